#include "store/volume/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "store/base/regular_file.h"

namespace memoirfs::volume {
namespace {

constexpr char kLockFile[] = "/LOCK";

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

Result<int> OpenLockFile(const std::string& store_path, int flags) {
  ASSIGN_OR_RETURN(UniqueFd file, OpenRegularFile(store_path + kLockFile, flags));
  return file.Release();
}

LockHolder ParseHolder(const std::string& text) {
  LockHolder holder;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals);
    const std::string value = line.substr(equals + 1);
    if (key == "pid") holder.pid = static_cast<int32_t>(std::strtol(value.c_str(), nullptr, 10));
    if (key == "boot") holder.boot_id = value;
    if (key == "socket") holder.socket = value;
  }
  return holder;
}

std::string ReadAll(int fd) {
  std::string text(4096, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

Status InUse(const std::string& store_path, int fd) {
  const LockHolder holder = ParseHolder(ReadAll(fd));
  return {Code::kLocked, "the store " + store_path + " is in use by process " +
                             std::to_string(holder.pid) + ", or by a command that reads it"};
}

}  // namespace

Result<StoreLock> StoreLock::Acquire(const std::string& store_path, const std::string& socket) {
  ASSIGN_OR_RETURN(const int fd, OpenLockFile(store_path, O_RDWR | O_CREAT));
  StoreLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return InUse(store_path, fd);
  }
  const std::string text =
      "pid=" + std::to_string(::getpid()) + "\nboot=" + BootId() + "\nsocket=" + socket + "\n";
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return Status::FromErrno(errno, "write " + store_path + kLockFile);
  }
  return lock;
}

Result<StoreLock> StoreLock::AcquireToRead(const std::string& store_path) {
  const Result<int> fd = OpenLockFile(store_path, O_RDONLY);
  if (fd.code() == Code::kNotFound) return StoreLock(-1);
  TRY(fd);
  StoreLock lock(*fd);
  if (::flock(*fd, LOCK_SH | LOCK_NB) != 0) return InUse(store_path, *fd);
  return lock;
}

Result<std::optional<LockHolder>> StoreLock::Holder(const std::string& store_path) {
  Result<int> fd = OpenLockFile(store_path, O_RDONLY);
  if (fd.code() == Code::kNotFound) return std::optional<LockHolder>();
  TRY(fd);
  const StoreLock guard(*fd);
  if (::flock(*fd, LOCK_SH | LOCK_NB) == 0) return std::optional<LockHolder>();
  return std::optional<LockHolder>(ParseHolder(ReadAll(*fd)));
}

StoreLock::StoreLock(StoreLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StoreLock& StoreLock::operator=(StoreLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

StoreLock::~StoreLock() {
  if (fd_ >= 0) ::close(fd_);  // releases the flock
}

}  // namespace memoirfs::volume
