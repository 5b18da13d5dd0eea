#pragma once

// What stat(2) shows of an inode beyond its content, as chain and index both keep it.

#include <sys/stat.h>

#include <cstdint>

#include "store/base/types.h"

namespace memoirfs {

struct Attributes {
  uint32_t mode = 0;  // type and permission bits, as st_mode
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t rdev = 0;
  Nanos atime = 0;
  Nanos mtime = 0;
  Nanos ctime = 0;
  Nanos btime = 0;  // when it was made; never changes

  bool IsDirectory() const { return S_ISDIR(mode); }
  bool IsRegular() const { return S_ISREG(mode); }
  bool IsSymlink() const { return S_ISLNK(mode); }
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

}  // namespace memoirfs
