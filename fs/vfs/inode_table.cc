#include "fs/vfs/inode_table.h"

#include <utility>

namespace memoirfs::vfs {

InodePin& InodePin::operator=(InodePin&& other) noexcept {
  if (this == &other) return *this;
  if (inode_) table_->Unpin(std::move(inode_));
  table_ = other.table_;
  inode_ = std::move(other.inode_);
  return *this;
}

InodePin::~InodePin() {
  if (inode_) table_->Unpin(std::move(inode_));
}

InodePin InodeTable::Pin(InodeKey key) {
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mutex);
  std::shared_ptr<LiveInode>& slot = shard.inodes[key];
  if (!slot) slot = std::make_shared<LiveInode>(volume_, budget_, key);
  return {this, slot};
}

InodePin InodeTable::Find(InodeKey key) {
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mutex);
  const auto found = shard.inodes.find(key);
  return found == shard.inodes.end() ? InodePin() : InodePin(this, found->second);
}

std::vector<InodePin> InodeTable::All() {
  std::vector<InodePin> pins;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (const auto& [key, inode] : shard.inodes) pins.emplace_back(this, inode);
  }
  return pins;
}

// New references are handed out under the shard's lock only, so a count of one (the table's) seen
// here stays one.
void InodeTable::Unpin(std::shared_ptr<LiveInode> inode) {
  std::shared_ptr<LiveInode> last;  // destroyed without the lock
  Shard& shard = ShardOf(inode->key());
  MutexLock lock(shard.mutex);
  const auto found = shard.inodes.find(inode->key());
  const bool kept = inode->must_keep();
  inode.reset();
  if (found == shard.inodes.end() || kept || found->second.use_count() != 1) return;
  last = std::move(found->second);
  shard.inodes.erase(found);
}

}  // namespace memoirfs::vfs
