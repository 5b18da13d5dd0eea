#include "store/meta/overlay.h"

namespace memoirfs::meta {
namespace {

// What a row costs beside its bytes: strings, a node of the map, a place in a vector.
constexpr size_t kRowOverhead = 192;

size_t CostOf(ByteView key, const OverlayRow& row) {
  return kRowOverhead + key.size() + (row ? row->size() : 0);
}

size_t CostOf(const Batch& batch) {
  size_t cost = 0;
  for (const auto& [key, row] : batch.ops()) cost += CostOf(key, row);
  return cost;
}

}  // namespace

Overlay::Entry& Overlay::EntryOf(const Bytes& key) { return entries_[key]; }

void Overlay::ClearPending(Entry& entry, ByteView key) {
  if (!entry.pending) return;
  bytes_ -= CostOf(key, *entry.pending);
  entry.pending.reset();
}

void Overlay::EraseIfEmpty(Entries::iterator at) {
  if (at->second.applied == nullptr && !at->second.pending) entries_.erase(at);
}

void Overlay::Apply(Batch batch, journal::Lsn lsn) {
  const size_t cost = CostOf(batch);
  queue_.push_back({std::move(batch), lsn, cost});
  bytes_ += cost;
  for (const auto& [key, row] : queue_.back().batch.ops()) {
    Entry& entry = EntryOf(key);
    ClearPending(entry, key);
    entry.applied = &row;
  }
}

void Overlay::ApplyPending(const Batch& batch) {
  for (const auto& [key, row] : batch.ops()) {
    Entry& entry = EntryOf(key);
    ClearPending(entry, key);
    entry.pending = row;
    bytes_ += CostOf(key, row);
  }
}

void Overlay::DropPending(const std::vector<Bytes>& keys) {
  for (const Bytes& key : keys) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) continue;
    ClearPending(at->second, key);
    EraseIfEmpty(at);
  }
}

const OverlayRow* Overlay::Find(ByteView key) const {
  const auto at = entries_.find(key);
  return at == entries_.end() ? nullptr : &at->second.Visible();
}

Overlay::Page Overlay::Copy(ByteView prefix, ByteView from, size_t limit) const {
  Page page;
  for (auto at = entries_.lower_bound(from); at != entries_.end(); ++at) {
    if (!ByteView(at->first).starts_with(prefix)) break;
    if (page.rows.size() == limit) return page;
    page.rows.emplace_back(at->first, at->second.Visible());
  }
  page.complete = true;
  return page;
}

std::vector<const Batch*> Overlay::Oldest(journal::Lsn durable, size_t max_bytes) const {
  std::vector<const Batch*> batches;
  size_t bytes = 0;
  for (const Queued& queued : queue_) {
    bytes += queued.bytes;
    if (queued.lsn > durable || (!batches.empty() && bytes > max_bytes)) break;
    batches.push_back(&queued.batch);
  }
  return batches;
}

void Overlay::DropOldest(size_t count) {
  for (; count > 0; --count) {
    const Queued& oldest = queue_.front();
    for (const auto& [key, row] : oldest.batch.ops()) {
      const auto at = entries_.find(key);
      if (at == entries_.end() || at->second.applied != &row) continue;  // replaced since
      at->second.applied = nullptr;
      EraseIfEmpty(at);
    }
    bytes_ -= oldest.bytes;
    queue_.pop_front();
  }
  ++drops_;
}

}  // namespace memoirfs::meta
