#pragma once

// The live inodes: those that are referred to (open, being changed) or have something to commit.
// An inode that was merely looked up has no object here.
//
// Thread-safe; sharded.

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fs/vfs/live_inode.h"
#include "store/base/mutex.h"

namespace memoirfs::vfs {

class InodeTable;

// Keeps a live inode alive. The table outlives it.
class InodePin {
 public:
  InodePin() = default;
  InodePin(InodeTable* table, std::shared_ptr<LiveInode> inode)
      : table_(table), inode_(std::move(inode)) {}
  InodePin(InodePin&&) noexcept = default;
  InodePin& operator=(InodePin&& other) noexcept;
  ~InodePin();

  explicit operator bool() const { return inode_ != nullptr; }
  LiveInode* operator->() const { return inode_.get(); }
  LiveInode& operator*() const { return *inode_; }

 private:
  InodeTable* table_ = nullptr;
  std::shared_ptr<LiveInode> inode_;
};

class InodeTable {
 public:
  InodeTable(volume::Volume& volume, DirtyBudget& budget) : volume_(volume), budget_(budget) {}

  // The live object, made when there is none.
  InodePin Pin(InodeKey key);
  // Empty when there is none.
  InodePin Find(InodeKey key);
  std::vector<InodePin> All();

 private:
  friend class InodePin;
  void Unpin(std::shared_ptr<LiveInode> inode);

  struct Shard {
    Mutex mutex;
    std::unordered_map<InodeKey, std::shared_ptr<LiveInode>, InodeKeyHash> inodes GUARDED_BY(mutex);
  };
  Shard& ShardOf(InodeKey key) { return shards_[InodeKeyHash{}(key) % shards_.size()]; }

  volume::Volume& volume_;
  DirtyBudget& budget_;
  std::array<Shard, 16> shards_;
};

}  // namespace memoirfs::vfs
