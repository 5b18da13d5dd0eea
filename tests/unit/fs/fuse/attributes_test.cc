#include "fs/fuse/attributes.h"

#include <catch2/catch.hpp>

namespace memoirfs::fuse {
namespace {

vfs::Node SomeNode() {
  vfs::Node node;
  node.id = vfs::NodeId((3ULL << 40) | 77);
  node.attributes = {.mode = S_IFREG | 0640,
                     .uid = 1000,
                     .gid = 1001,
                     .rdev = 0,
                     .atime = 5'000'000'007,
                     .mtime = -1,
                     .ctime = 1,
                     .btime = 0};
  node.nlink = 2;
  node.size = 4097;
  node.blocks = 9;
  return node;
}

TEST_CASE("stat shows the node's own number, size and times before 1970") {
  const struct stat facts = StatOf(SomeNode());
  CHECK(facts.st_ino == ((3ULL << 40) | 77));
  CHECK(facts.st_mode == (S_IFREG | 0640));
  CHECK(facts.st_nlink == 2);
  CHECK(facts.st_uid == 1000);
  CHECK(facts.st_gid == 1001);
  CHECK(facts.st_size == 4097);
  CHECK(facts.st_blocks == 9);
  CHECK(facts.st_blksize == kPreferredIoSize);
  CHECK(facts.st_atim.tv_sec == 5);
  CHECK(facts.st_atim.tv_nsec == 7);
  CHECK(facts.st_mtim.tv_sec == -1);
  CHECK(facts.st_mtim.tv_nsec == 999'999'999);
}

TEST_CASE("what may change without a notification is not cached") {
  vfs::Node node = SomeNode();
  CHECK(EntryOf(node).entry_timeout == 86'400);
  CHECK(EntryOf(node).attr_timeout == 86'400);
  node.cacheable = false;
  CHECK(EntryOf(node).entry_timeout == 86'400);
  CHECK(EntryOf(node).attr_timeout == 0);
  CHECK(MissingEntry().ino == 0);
  CHECK(MissingEntry().entry_timeout == 86'400);
}

TEST_CASE("a change carries exactly what was asked for") {
  struct stat wanted {};
  wanted.st_mode = 0600;
  wanted.st_size = 10;
  wanted.st_atim = {.tv_sec = 1, .tv_nsec = 2};
  wanted.st_mtim = {.tv_sec = 3, .tv_nsec = 4};

  vfs::AttributeChange change = ChangeOf(wanted, FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_MTIME);
  CHECK(change.mode == 0600U);
  CHECK(change.mtime == 3'000'000'004);
  CHECK_FALSE(change.size);
  CHECK_FALSE(change.atime);
  CHECK_FALSE(change.uid);
  CHECK_FALSE(change.kill_privileges);

  change = ChangeOf(wanted, FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_SIZE |
                                FUSE_SET_ATTR_KILL_SUID);
  CHECK(change.atime_now);
  CHECK_FALSE(change.atime);
  CHECK_FALSE(change.mtime_now);
  CHECK(change.size == 10U);
  CHECK(change.kill_privileges);
}

TEST_CASE("a time beyond the range of nanoseconds becomes the nearest one") {
  struct stat wanted {};
  wanted.st_mtim = {.tv_sec = INT64_MAX, .tv_nsec = 0};
  CHECK(ChangeOf(wanted, FUSE_SET_ATTR_MTIME).mtime == INT64_MAX);
  CHECK(ChangeOf(wanted, 0).kill_privileges);
  CHECK_FALSE(ChangeOf(wanted, FUSE_SET_ATTR_MODE).kill_privileges);
  wanted.st_mtim = {.tv_sec = INT64_MIN, .tv_nsec = 0};
  CHECK(ChangeOf(wanted, FUSE_SET_ATTR_MTIME).mtime == INT64_MIN);
}

}  // namespace
}  // namespace memoirfs::fuse
