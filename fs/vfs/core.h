#pragma once

// What all views of a store share.

#include <atomic>
#include <functional>
#include <optional>

#include "fs/vfs/dirty_budget.h"
#include "fs/vfs/inode_table.h"
#include "fs/vfs/janitor.h"
#include "fs/vfs/notifications.h"
#include "fs/vfs/vfs.h"
#include "store/base/mutex.h"

namespace memoirfs::vfs {

// Thread-safe.
class Vfs::Core {
 public:
  Core(volume::Volume& volume, const VfsOptions& options);

  volume::Volume& volume() { return volume_; }
  InodeTable& inodes() { return inodes_; }
  Notifications& notifications() { return notifications_; }
  const DirtyBudget& budget() const { return budget_; }
  std::atomic<uint64_t>& open_files() { return open_files_; }

  // Commits every file for which `wanted` says so; goes on after a failure and returns the first.
  using Wanted = std::function<bool(LiveInode&)>;
  Status CommitWhere(const Wanted& wanted);
  void RunJanitorOnce();
  // Before a write: when too many bytes are dirty, commits or spills the largest files.
  Status MakeRoom();

  void SetStatusSource(StatusSource source);
  std::string RenderStatus(const std::optional<std::string>& agent);

 private:
  volume::Volume& volume_;
  const VfsOptions options_;
  DirtyBudget budget_;
  InodeTable inodes_;
  Notifications notifications_;
  std::atomic<uint64_t> open_files_{0};
  std::atomic<bool> autosave_failed_{false};
  Mutex status_mutex_;
  StatusSource status_source_ GUARDED_BY(status_mutex_);
  std::optional<Janitor> janitor_;  // last: it uses the others
};

}  // namespace memoirfs::vfs
