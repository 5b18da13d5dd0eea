#pragma once

// Verified bytes kept in memory, the least recently used ones dropped first.

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

#include "store/base/bytes.h"
#include "store/base/digest.h"

namespace memoirfs::cas {

// Not thread-safe: the object store guards it.
class ObjectCache {
 public:
  explicit ObjectCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Null when it is not there.
  Buffer Find(const Digest& digest);
  // An object longer than the whole cache is not kept.
  void Insert(const Digest& digest, Buffer bytes);
  void Erase(const Digest& digest);

 private:
  using Entries = std::list<std::pair<Digest, Buffer>>;

  void Drop(Entries::iterator at);

  const size_t max_bytes_;
  size_t bytes_ = 0;
  Entries entries_;  // the most recently used first
  std::unordered_map<Digest, Entries::iterator> by_digest_;
};

}  // namespace memoirfs::cas
