#pragma once

// One process at a time holds a store: flock on <store>/LOCK for life. The file says who: pid, boot
// id and the path of the control socket, one "key=value" a line.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/base/status.h"

namespace memoirfs::volume {

struct LockHolder {
  int32_t pid = 0;
  std::string boot_id;
  std::string socket;  // empty: it serves none (a command that works offline)
};

class StoreLock {
 public:
  // kLocked when another process holds it: the message says which.
  static Result<StoreLock> Acquire(const std::string& store_path, const std::string& socket);
  // For one who only reads: any number of them at once, and nobody else. Writes nothing, also where
  // the file is missing (then it excludes nobody: a store that may not be written, or never was).
  static Result<StoreLock> AcquireToRead(const std::string& store_path);
  // The holder, when there is one.
  static Result<std::optional<LockHolder>> Holder(const std::string& store_path);

  StoreLock(StoreLock&&) noexcept;
  StoreLock& operator=(StoreLock&&) noexcept;
  ~StoreLock();

 private:
  explicit StoreLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace memoirfs::volume
