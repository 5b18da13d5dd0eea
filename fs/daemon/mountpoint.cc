#include "fs/daemon/mountpoint.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "fs/daemon/mountinfo.h"
#include "fs/daemon/paths.h"

namespace memoirfs::daemon {
namespace {

namespace stdfs = std::filesystem;

bool IsInside(const std::string& path, const std::string& directory) {
  return path == directory || path.compare(0, directory.size() + 1, directory + "/") == 0;
}

Status CheckDirectory(const std::string& mountpoint) {
  struct stat st {};
  if (::stat(mountpoint.c_str(), &st) != 0) {
    const int err = errno;
    const std::string hint = err == ENOENT ? ". Make the directory first" : "";
    return Status(
        CodeOfErrno(err),
        "mount point " + mountpoint + ": " + Status::FromErrno(err, "stat").message() + hint, err);
  }
  if (!S_ISDIR(st.st_mode)) {
    return Status(Code::kNotDirectory,
                  "mount point " + mountpoint + " is not a directory. Name a directory");
  }
  return {};
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

Status RunFusermount(const std::string& mountpoint) {
  std::string program = "fusermount3";
  std::string flags = "-uz";
  std::string separator = "--";
  std::string target = mountpoint;
  std::array<char*, 5> arguments{program.data(), flags.data(), separator.data(), target.data(),
                                 nullptr};
  pid_t pid = 0;
  const int err =
      ::posix_spawnp(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ);
  if (err != 0) {
    return Status::FromErrno(err, "run fusermount3 (Debian's package fuse3 has it)");
  }
  int result = 0;
  while (::waitpid(pid, &result, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(result) && WEXITSTATUS(result) == 0) return {};
  return Status(Code::kBusy, "fusermount3 -uz " + mountpoint + " did not succeed");
}

}  // namespace

Result<std::string> ResolveMountpoint(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr),
                                                        &std::free);
  if (resolved != nullptr) return std::string(resolved.get());
  return AbsolutePath(path);
}

bool IsDeadMount(const std::string& mountpoint) {
  struct stat st {};
  return ::stat(mountpoint.c_str(), &st) != 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

Status PrepareMountpoint(const std::string& mountpoint, const std::string& store) {
  if (IsInside(mountpoint, store)) {
    return Status(Code::kInvalidArgument, "mount point " + mountpoint + " lies inside the store " +
                                              store + ". Name a directory outside it");
  }
  // Several dead mounts may lie on one another; each round takes one away.
  for (int round = 0; round < 8 && IsDeadMount(mountpoint); ++round) TRY(DetachMount(mountpoint));
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mounted, FindMount(mountpoint));
  if (mounted && mounted->type == kFileSystemType) {
    return Status(Code::kBusy, mountpoint + " is mounted already, from the store " +
                                   mounted->source + ". Unmount it first, or name another place");
  }
  TRY(CheckDirectory(mountpoint));
  return CheckEmpty(mountpoint);
}

Status DetachMount(const std::string& mountpoint) {
  if (::umount2(mountpoint.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) return {};
  if (errno != EPERM) return Status::FromErrno(errno, "unmount " + mountpoint);
  return RunFusermount(mountpoint);
}

}  // namespace memoirfs::daemon
