#include "fs/daemon/mountpoint.h"

#include <sys/vfs.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "fs/daemon/paths.h"
#include "fs/fuse/mount.h"
#include "fs/fuse/mountinfo.h"

namespace memoirfs::daemon {
namespace {

namespace stdfs = std::filesystem;

bool IsInside(const std::string& path, const std::string& directory) {
  return path == directory || path.compare(0, directory.size() + 1, directory + "/") == 0;
}

Status CheckEmpty(const std::string& mountpoint) {
  std::error_code error;
  const bool empty = stdfs::is_empty(mountpoint, error);
  if (error) return Status::FromErrno(error.value(), "list mount point " + mountpoint);
  if (empty) return {};
  return Status(Code::kNotEmpty,
                "mount point " + mountpoint +
                    " is not empty: a mount would hide what it holds. Name an empty directory");
}

}  // namespace

Result<std::string> ResolveMountpoint(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr),
                                                        &std::free);
  if (resolved != nullptr) return std::string(resolved.get());
  return AbsolutePath(path);
}

bool IsDeadMount(const std::string& mountpoint) {
  // Not stat(2): the kernel may know the root's attributes without asking the daemon.
  struct statfs facts {};
  return ::statfs(mountpoint.c_str(), &facts) != 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

Status PrepareMountpoint(const std::string& mountpoint, const std::string& store) {
  if (IsInside(mountpoint, store)) {
    return Status(Code::kInvalidArgument, "mount point " + mountpoint + " lies inside the store " +
                                              store + ". Name a directory outside it");
  }
  // Several dead mounts may lie on one another; each round takes one away.
  for (int round = 0; round < 8 && IsDeadMount(mountpoint); ++round) {
    TRY(fuse::TakeMountAway(mountpoint, /*lazy=*/true));
  }
  ASSIGN_OR_RETURN(const std::optional<fuse::MountEntry> mounted, fuse::FindMount(mountpoint));
  if (mounted && mounted->type == fuse::kFileSystemType) {
    return Status(Code::kBusy, mountpoint + " is mounted already, from the store " +
                                   mounted->source + ". Unmount it first, or name another place");
  }
  TRY(fuse::CheckMountpoint(mountpoint));
  return CheckEmpty(mountpoint);
}

}  // namespace memoirfs::daemon
