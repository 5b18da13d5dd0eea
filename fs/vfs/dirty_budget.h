#pragma once

#include <atomic>
#include <cstdint>

namespace memoirfs::vfs {

// Bytes in memory that are not committed, over all files. Thread-safe.
class DirtyBudget {
 public:
  void Add(uint64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void Subtract(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> used_{0};
};

}  // namespace memoirfs::vfs
