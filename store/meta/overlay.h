#pragma once

// What the index shows and LevelDB does not hold yet: a queue of applied batches in the order of
// the journal, and for each key that occurs in one the row that is visible now. Above those lie
// pending rows, which are never written.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/bytes.h"
#include "store/journal/frame.h"
#include "store/meta/index.h"

namespace memoirfs::meta {

// A row that hides what LevelDB holds; nullopt is a deleted one.
using OverlayRow = std::optional<Bytes>;

// Not thread-safe: the index guards it.
class Overlay {
 public:
  void Apply(Batch batch, journal::Lsn lsn);
  void ApplyPending(const Batch& batch);
  void DropPending(const std::vector<Bytes>& keys);

  // Null when LevelDB has the say. Valid until the next change.
  const OverlayRow* Find(ByteView key) const;

  // The rows from `from` on that begin with `prefix`, at most `limit` of them.
  struct Page {
    std::vector<std::pair<Bytes, OverlayRow>> rows;
    bool complete = false;  // there are no further ones
  };
  Page Copy(ByteView prefix, ByteView from, size_t limit) const;

  // The oldest batches with lsn <= durable: as many as fit `max_bytes`, at least one when there is
  // one. They stay valid and unchanged until DropOldest; Apply may go on meanwhile.
  std::vector<const Batch*> Oldest(journal::Lsn durable, size_t max_bytes) const;
  // The `count` oldest batches are in LevelDB now: their rows disappear here, but for those that a
  // later batch replaced.
  void DropOldest(size_t count);

  // Rises with each DropOldest: a LevelDB iterator that was made at the same value misses nothing
  // that the overlay no longer holds.
  uint64_t drops() const { return drops_; }
  bool has_queued() const { return !queue_.empty(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Queued {
    Batch batch;
    journal::Lsn lsn;
    size_t bytes;
  };
  struct Entry {
    const OverlayRow* applied = nullptr;  // in the newest queued batch that has the key
    std::optional<OverlayRow> pending;

    const OverlayRow& Visible() const { return pending ? *pending : *applied; }
  };
  using Entries = std::map<Bytes, Entry, std::less<>>;

  Entry& EntryOf(const Bytes& key);
  void ClearPending(Entry& entry, ByteView key);
  void EraseIfEmpty(Entries::iterator at);

  std::deque<Queued> queue_;
  Entries entries_;
  size_t bytes_ = 0;
  uint64_t drops_ = 0;
};

}  // namespace memoirfs::meta
