#include "fs/fuse/attributes.h"

namespace memoirfs::fuse {
namespace {

constexpr double kDay = 86'400;
constexpr Nanos kSecond = 1'000'000'000;

// Times before 1970 keep 0 <= tv_nsec, so the second is rounded down.
timespec TimeOf(Nanos nanos) {
  Nanos seconds = nanos / kSecond;
  Nanos rest = nanos % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return {.tv_sec = seconds, .tv_nsec = rest};
}

// A time beyond what 64 bits of nanoseconds hold (the years 1677 to 2262) becomes the nearest one.
Nanos NanosOf(const timespec& time) {
  Nanos nanos = 0;
  if (__builtin_mul_overflow(Nanos{time.tv_sec}, kSecond, &nanos) ||
      __builtin_add_overflow(nanos, Nanos{time.tv_nsec}, &nanos)) {
    return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
  }
  return nanos;
}

}  // namespace

struct stat StatOf(const vfs::Node& node) {
  struct stat out {};
  out.st_ino = node.id.value;
  out.st_mode = node.attributes.mode;
  out.st_nlink = node.nlink;
  out.st_uid = node.attributes.uid;
  out.st_gid = node.attributes.gid;
  out.st_rdev = node.attributes.rdev;
  out.st_size = static_cast<off_t>(node.size);
  out.st_blksize = kPreferredIoSize;
  out.st_blocks = static_cast<blkcnt_t>(node.blocks);
  out.st_atim = TimeOf(node.attributes.atime);
  out.st_mtim = TimeOf(node.attributes.mtime);
  out.st_ctim = TimeOf(node.attributes.ctime);
  return out;
}

double CacheSeconds(const vfs::Node& node) { return node.cacheable ? kDay : 0; }

fuse_entry_param EntryOf(const vfs::Node& node) {
  fuse_entry_param entry{};
  entry.ino = node.id.value;
  entry.attr = StatOf(node);
  entry.attr_timeout = CacheSeconds(node);
  entry.entry_timeout = kDay;
  return entry;
}

fuse_entry_param MissingEntry() {
  fuse_entry_param entry{};  // inode 0
  entry.entry_timeout = kDay;
  return entry;
}

vfs::AttributeChange ChangeOf(const struct stat& wanted, int to_set) {
  vfs::AttributeChange change;
  if (to_set & FUSE_SET_ATTR_MODE) change.mode = wanted.st_mode;
  if (to_set & FUSE_SET_ATTR_UID) change.uid = wanted.st_uid;
  if (to_set & FUSE_SET_ATTR_GID) change.gid = wanted.st_gid;
  if (to_set & FUSE_SET_ATTR_SIZE) change.size = static_cast<uint64_t>(wanted.st_size);
  if (to_set & FUSE_SET_ATTR_CTIME) change.ctime = NanosOf(wanted.st_ctim);
  change.atime_now = (to_set & FUSE_SET_ATTR_ATIME_NOW) != 0;
  change.mtime_now = (to_set & FUSE_SET_ATTR_MTIME_NOW) != 0;
  // The kernel sets the plain bit too when it asks for the present time.
  if ((to_set & FUSE_SET_ATTR_ATIME) && !change.atime_now) change.atime = NanosOf(wanted.st_atim);
  if ((to_set & FUSE_SET_ATTR_MTIME) && !change.mtime_now) change.mtime = NanosOf(wanted.st_mtim);
  // chown(2) that names no owner asks for nothing but that, by a bit that libfuse 3.14 hides.
  change.kill_privileges = to_set == 0 || (to_set & FUSE_SET_ATTR_KILL_SUID) != 0;
  return change;
}

}  // namespace memoirfs::fuse
