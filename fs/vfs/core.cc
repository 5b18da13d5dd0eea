#include "fs/vfs/core.h"

#include <algorithm>

#include "store/base/log.h"

namespace memoirfs::vfs {

Vfs::Core::Core(volume::Volume& volume, const VfsOptions& options)
    : volume_(volume), options_(options), inodes_(volume, budget_) {
  if (options.background) janitor_.emplace([this] { RunJanitorOnce(); });
}

Status Vfs::Core::CommitWhere(const Wanted& wanted) {
  Status first;
  for (const InodePin& inode : inodes_.All()) {
    if (!inode->must_keep() || !wanted(*inode)) continue;
    const Status status = inode->Commit();
    if (first.ok()) first = status;
  }
  return first;
}

void Vfs::Core::RunJanitorOnce() {
  const Nanos now = volume_.clock().Monotonic();
  const Status status = CommitWhere([&](LiveInode& inode) {
    return inode.IsDue(now, options_.autosave_idle, options_.autosave_age);
  });
  // Once, not each second of a full disk.
  const bool told = autosave_failed_.exchange(!status.ok());
  if (!status.ok() && !told) Log(LogLevel::kError, "vfs.autosave", status.ToString());
}

Status Vfs::Core::MakeRoom() {
  if (budget_.used() <= options_.dirty_budget) return {};
  std::vector<std::pair<uint64_t, InodePin>> dirty;
  for (InodePin& inode : inodes_.All()) {
    if (const uint64_t bytes = inode->dirty_bytes(); bytes > 0) {
      dirty.emplace_back(bytes, std::move(inode));
    }
  }
  std::sort(dirty.begin(), dirty.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  Status first;
  // Some more than needed, so that not each write comes here.
  const uint64_t enough = options_.dirty_budget / 4 * 3;
  for (const auto& [bytes, inode] : dirty) {
    if (budget_.used() <= enough) break;
    const Status status = inode->Relieve();
    if (first.ok()) first = status;
  }
  return budget_.used() > options_.dirty_budget ? first : Status();
}

void Vfs::Core::SetStatusSource(StatusSource source) {
  MutexLock lock(status_mutex_);
  status_source_ = std::move(source);
}

std::string Vfs::Core::RenderStatus(const std::optional<std::string>& agent) {
  StatusSource source;
  {
    MutexLock lock(status_mutex_);
    source = status_source_;
  }
  return source ? source(agent) : "{}\n";
}

}  // namespace memoirfs::vfs
