#include "fs/vfs/handle_table.h"

#include "fs/vfs/actor.h"

namespace memoirfs::vfs {
namespace {

Status NoSuchHandle() { return Status(Code::kInvalidArgument, "no such open file"); }

}  // namespace

chain::Actor OpenFile::ActorFor(const Caller& caller) {
  MutexLock lock(mutex_);
  if (!actor_) actor_ = ActorOf(caller.pid > 0 ? caller : opener);
  return *actor_;
}

HandleId HandleTable::Add(std::shared_ptr<OpenFile> file) {
  const HandleId handle{next_.fetch_add(1, std::memory_order_relaxed)};
  Shard& shard = ShardOf(handle);
  MutexLock lock(shard.mutex);
  shard.files.emplace(handle.value, std::move(file));
  return handle;
}

Result<std::shared_ptr<OpenFile>> HandleTable::Find(HandleId handle) {
  Shard& shard = ShardOf(handle);
  MutexLock lock(shard.mutex);
  const auto found = shard.files.find(handle.value);
  if (found == shard.files.end()) return NoSuchHandle();
  return found->second;
}

Result<std::shared_ptr<OpenFile>> HandleTable::Remove(HandleId handle) {
  Shard& shard = ShardOf(handle);
  MutexLock lock(shard.mutex);
  const auto found = shard.files.find(handle.value);
  if (found == shard.files.end()) return NoSuchHandle();
  std::shared_ptr<OpenFile> file = std::move(found->second);
  shard.files.erase(found);
  return file;
}

std::vector<std::shared_ptr<OpenFile>> HandleTable::All() {
  std::vector<std::shared_ptr<OpenFile>> files;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (const auto& [handle, file] : shard.files) files.push_back(file);
  }
  return files;
}

}  // namespace memoirfs::vfs
