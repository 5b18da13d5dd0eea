#pragma once

// The mounts that a daemon serves.

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "fs/daemon/store_service.h"
#include "fs/fuse/session.h"
#include "fs/vfs/vfs.h"
#include "store/base/mutex.h"

namespace memoirfs::daemon {

struct MountRequest {
  std::string mountpoint;  // absolute, as the kernel calls it
  std::optional<std::string> agent;
  bool read_only = false;
  bool allow_other = false;
};

// No room, whoever says so: the disk, a quota, or `ulimit -f`. It stays so until somebody makes
// room.
bool IsLackOfRoom(Code code);

// Makes a session; tests give one that mounts nothing.
using SessionFactory = std::function<Result<std::unique_ptr<fuse::Session>>(
    const fuse::SessionOptions&, const fuse::ViewFactory&)>;

// Thread-safe. No lock is held while something is mounted or unmounted: that may take long.
class Mounts {
 public:
  // `changed` is called when a mount went away, on any thread; it must only wake somebody.
  // `source` is what /proc/mounts names as each mount's source: the store.
  Mounts(vfs::Vfs& vfs, std::string source, SessionFactory factory, std::function<void()> changed);
  // Every mount must be gone: UnmountAll.
  ~Mounts();

  // Returns when the mount answers. kUnavailable when no mount is made any more.
  Status Mount(const MountRequest& request);
  // Commits, then takes the mount away. kNotFound; kBusy when files are open there (not if `lazy`).
  Status Unmount(const std::string& mountpoint, bool lazy);
  // Commits and takes every mount away, busy ones lazily. No mount is made after that.
  void UnmountAll();
  // True when there is no mount, and none being made: then none is made after that either.
  bool CloseIfEmpty();
  // Forgets mounts that somebody else took away (umount(8), fusermount3 -u).
  void Reap();

  std::vector<MountFacts> List() const;
  // Mounts, and those being made.
  size_t count() const;

 private:
  struct Entry;
  using Entries = std::list<std::shared_ptr<Entry>>;

  Status CheckFree(const MountRequest& request) REQUIRES(mutex_);
  Status Start(const MountRequest& request, const std::shared_ptr<Entry>& entry);
  Result<std::shared_ptr<Entry>> TakeForUnmount(const std::string& mountpoint);
  void Erase(const std::shared_ptr<Entry>& entry);

  vfs::Vfs& vfs_;
  const std::string source_;
  const SessionFactory factory_;
  const std::function<void()> changed_;
  mutable Mutex mutex_{LockRank::kLeaf};
  Entries entries_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace memoirfs::daemon
