#include "fs/fuse/notifier.h"

#include "tests/unit/fs/fuse/fixture.h"

namespace memoirfs::testing {
namespace {

constexpr uint64_t kSomeNode = (1ULL << 40) | 7;

fuse_notify_inval_inode_out InodeOf(const FakeKernel::Notification& notification) {
  return FakeKernel::Answer{0, notification.body}.As<fuse_notify_inval_inode_out>();
}

TEST_CASE("a changed name drops the entry and then the whole listing") {
  Fixture<> fixture;
  fixture.notifier->EntryChanged(vfs::NodeId(kSomeNode), "notes.md");

  const auto entry = fixture.kernel.WaitNotification();
  REQUIRE(entry.code == FUSE_NOTIFY_INVAL_ENTRY);
  const auto head = FakeKernel::Answer{0, entry.body}.As<fuse_notify_inval_entry_out>();
  CHECK(head.parent == kSomeNode);
  CHECK(head.namelen == 8);
  CHECK(entry.body.substr(sizeof(head)) == std::string("notes.md\0", 9));

  const auto listing = fixture.kernel.WaitNotification();
  REQUIRE(listing.code == FUSE_NOTIFY_INVAL_INODE);
  CHECK(InodeOf(listing).ino == kSomeNode);
  CHECK(InodeOf(listing).off == 0);
  CHECK(InodeOf(listing).len == 0);
}

TEST_CASE("changed content drops every page, changed attributes none") {
  Fixture<> fixture;
  fixture.notifier->ContentChanged(vfs::NodeId(kSomeNode));
  CHECK(InodeOf(fixture.kernel.WaitNotification()).off == 0);
  fixture.notifier->AttributesChanged(vfs::NodeId(kSomeNode));
  CHECK(InodeOf(fixture.kernel.WaitNotification()).off == -1);
}

TEST_CASE("notifications before the start and after the end are dropped") {
  fuse::Notifier early;
  early.EntryChanged(vfs::NodeId(kSomeNode), "x");
  early.ContentChanged(vfs::NodeId(kSomeNode));
  early.AttributesChanged(vfs::NodeId(kSomeNode));

  Fixture<> fixture;
  fixture.kernel.Close();
  fixture.notifier->ContentChanged(vfs::NodeId(kSomeNode));
}

}  // namespace
}  // namespace memoirfs::testing
