#include "store/cas/object_cache.h"

#include <iterator>

namespace memoirfs::cas {
namespace {

// What an entry costs beside its bytes, so that many small objects are bounded too.
constexpr size_t kEntryOverhead = 256;

size_t CostOf(const Buffer& bytes) { return bytes->size() + kEntryOverhead; }

}  // namespace

Buffer ObjectCache::Find(const Digest& digest) {
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void ObjectCache::Insert(const Digest& digest, Buffer bytes) {
  Erase(digest);
  const size_t cost = CostOf(bytes);
  if (cost > max_bytes_) return;
  while (bytes_ + cost > max_bytes_) Drop(std::prev(entries_.end()));
  entries_.emplace_front(digest, std::move(bytes));
  by_digest_.emplace(digest, entries_.begin());
  bytes_ += cost;
}

void ObjectCache::Erase(const Digest& digest) {
  const auto found = by_digest_.find(digest);
  if (found != by_digest_.end()) Drop(found->second);
}

void ObjectCache::Drop(Entries::iterator at) {
  bytes_ -= CostOf(at->second);
  by_digest_.erase(at->first);
  entries_.erase(at);
}

}  // namespace memoirfs::cas
