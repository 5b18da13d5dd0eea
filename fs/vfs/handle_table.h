#pragma once

// What is open through one mount.

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>

#include "fs/vfs/inode_table.h"
#include "fs/vfs/node_id.h"
#include "store/base/mutex.h"

namespace memoirfs::vfs {

struct OpenFile {
  NodeParts node;
  int flags = 0;
  Caller opener;
  InodePin inode;  // empty for virtual files
  HandleMarks marks;
  Bytes rendered;  // of status.json: what it was at open

  // Who changes the file through this handle: asked once, at the first change, since the process
  // of a later one may be gone (stores of a mapping come without any).
  chain::Actor ActorFor(const Caller& caller);

 private:
  Mutex mutex_;
  std::optional<chain::Actor> actor_ GUARDED_BY(mutex_);
};

// Thread-safe; sharded. Handles are never reused.
class HandleTable {
 public:
  HandleId Add(std::shared_ptr<OpenFile> file);
  Result<std::shared_ptr<OpenFile>> Find(HandleId handle);
  // Takes it out; kInvalidArgument when there is none.
  Result<std::shared_ptr<OpenFile>> Remove(HandleId handle);
  std::vector<std::shared_ptr<OpenFile>> All();

 private:
  struct Shard {
    Mutex mutex;
    std::unordered_map<uint64_t, std::shared_ptr<OpenFile>> files GUARDED_BY(mutex);
  };
  Shard& ShardOf(HandleId handle) { return shards_[handle.value % shards_.size()]; }

  std::atomic<uint64_t> next_{1};
  std::array<Shard, 16> shards_;
};

}  // namespace memoirfs::vfs
