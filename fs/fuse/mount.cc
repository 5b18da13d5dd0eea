#include "fs/fuse/mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "fs/fuse/mountinfo.h"
#include "store/base/unique_fd.h"

extern char** environ;

namespace memoirfs::fuse {
namespace {

constexpr const char* kDevice = "/dev/fuse";
constexpr const char* kHelper = "fusermount3";
constexpr const char* kUsualHelper = "/usr/bin/fusermount3";
constexpr const char* kContainerHint =
    "in a container, start it with --device /dev/fuse --cap-add SYS_ADMIN (with some profiles also "
    "--security-opt apparmor=unconfined)";

bool IsRoot() { return ::geteuid() == 0; }

Status CheckDevice() {
  const int fd = ::open(kDevice, O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    ::close(fd);
    return {};
  }
  const Status error = Status::FromErrno(errno, kDevice);
  if (error.code() == Code::kAccess && !IsRoot()) {
    return Status(Code::kAccess,
                  fmt::format("{}: this user may not open it; the administrator has to allow that "
                              "(chmod 666 {}, Debian's default), or mount as root",
                              error.message(), kDevice));
  }
  // Not kUnavailable: that passes by itself, and is tried again.
  return Status(error.code(), fmt::format("{}: load the module (modprobe fuse); {}",
                                          error.message(), kContainerHint));
}

// Where execvp would find it, and where libfuse looks first.
bool HelperExists() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string("/usr/bin:/bin:") + (path ? path : ""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + kHelper).c_str(), X_OK) == 0) return true;
  }
  return false;
}

bool ConfigurationAllowsOther() {
  std::ifstream file("/etc/fuse.conf");
  for (std::string line; std::getline(file, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line == "user_allow_other") return true;
  }
  return false;
}

Status CheckOrdinaryUser(const SessionOptions& options) {
  if (!HelperExists()) {
    return Status(Code::kNotFound, fmt::format("{} was not found, and an ordinary user cannot "
                                               "mount without it: install the package fuse3",
                                               kHelper));
  }
  if (options.allow_other && !ConfigurationAllowsOther()) {
    return Status(Code::kPermission,
                  "allow_other is refused to ordinary users: the administrator has to add the line "
                  "user_allow_other to /etc/fuse.conf, or mount as root");
  }
  if (::access(options.mountpoint.c_str(), W_OK) != 0) {
    return Status(Code::kAccess, fmt::format("the mount point {} is not writable for this user, "
                                             "which {} requires: choose a directory of your own",
                                             options.mountpoint, kHelper));
  }
  return {};
}

// libfuse splits its options at commas and takes a backslash as the escape for both.
std::string EscapeOption(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == ',' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// Starts the helper with its stderr going to `err`.
Result<pid_t> StartHelper(const std::string& path, bool lazy, int err) {
  std::vector<std::string> words = {kHelper, "-u"};
  if (lazy) words.emplace_back("-z");
  words.insert(words.end(), {"--", path});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t child = 0;
  int error = ::posix_spawnp(&child, kHelper, &actions, nullptr, arguments.data(), environ);
  // A daemon may have been started with a PATH that does not have it.
  if (error == ENOENT) {
    error = ::posix_spawn(&child, kUsualHelper, &actions, nullptr, arguments.data(), environ);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return child;
  return Status::FromErrno(
      error, fmt::format("{} and {} (install the package fuse3)", kHelper, kUsualHelper));
}

// Up to the end, or to more than anybody reads.
std::string ReadSome(int fd) {
  constexpr size_t kEnough = 4096;
  std::string text;
  std::array<char, 512> piece{};
  while (text.size() < kEnough) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(piece.data(), static_cast<size_t>(n));
  }
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

struct HelperEnd {
  bool fine = false;
  std::string said;
};

Result<HelperEnd> RunHelper(const std::string& path, bool lazy) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Status::FromErrno(errno, "make a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  ASSIGN_OR_RETURN(const pid_t child, StartHelper(path, lazy, write_end.get()));
  write_end.Reset();
  HelperEnd end;
  end.said = ReadSome(read_end.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Status::FromErrno(errno, fmt::format("waiting for {}", kHelper));
  }
  end.fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return end;
}

Status Busy(const std::string& path) {
  return Status(Code::kBusy, fmt::format("{} is in use: close the files and leave the directories "
                                         "below it, or unmount lazily",
                                         path));
}

}  // namespace

Status CheckMountpoint(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    const int error = errno;
    const char* hint = "check the path";
    if (error == ENOENT) hint = "make the directory first";
    if (error == ENOTCONN) hint = "a dead mount lies there; take it away with fusermount3 -u -z";
    return Status::FromErrno(error, fmt::format("the mount point {} ({})", path, hint));
  }
  if (!S_ISDIR(facts.st_mode)) {
    return Status(Code::kNotDirectory,
                  fmt::format("the mount point {} is not a directory: choose one that is", path));
  }
  return {};
}

Status CheckMountable(const SessionOptions& options) {
  TRY(CheckMountpoint(options.mountpoint));
  TRY(CheckDevice());
  return IsRoot() ? Status() : CheckOrdinaryUser(options);
}

std::string MountOptionsOf(const SessionOptions& options) {
  // nosuid and nodev whoever mounts: an agent's memory holds data, and a file that arrives by sync
  // must not be able to grant rights. fusermount3 enforces both anyway, so root's mounts are alike.
  std::string out = "default_permissions,nosuid,nodev,subtype=memoirfs,fsname=";
  out += EscapeOption(options.source.empty() ? "memoirfs" : options.source);
  if (options.allow_other) out += ",allow_other";
  if (options.read_only) out += ",ro";
  return out;
}

Status ExplainMountFailure(const SessionOptions& options, const std::string& libfuse) {
  const std::string said = libfuse.empty() ? "the reason is on stderr" : libfuse;
  return Status(Code::kPermission, fmt::format("cannot mount on {}: {}; {}", options.mountpoint,
                                               said, kContainerHint));
}

Result<bool> IsMountedAt(const std::string& path, const std::string& device) {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> entries, ReadMountInfo());
  return std::any_of(entries.begin(), entries.end(), [&](const MountEntry& entry) {
    return entry.mountpoint == path && entry.device == device;
  });
}

void WidenReadahead(const std::string& device, uint32_t bytes) {
  std::ofstream setting("/sys/class/bdi/" + device + "/read_ahead_kb");
  setting << bytes / 1024;
}

Status TakeMountAway(const std::string& path, bool lazy) {
  if (::umount2(path.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
  const int error = errno;
  if (error == EBUSY) return Busy(path);
  if (error != EPERM) return Status::FromErrno(error, fmt::format("unmount {}", path));
  ASSIGN_OR_RETURN(const HelperEnd end, RunHelper(path, lazy));
  if (end.fine) return {};
  // It tells its reasons in words only, and in English whatever the locale is.
  if (end.said.find("Device or resource busy") != std::string::npos) return Busy(path);
  return Status(Code::kPermission,
                fmt::format("cannot unmount {}: {}", path,
                            end.said.empty() ? fmt::format("{} failed", kHelper) : end.said));
}

}  // namespace memoirfs::fuse
