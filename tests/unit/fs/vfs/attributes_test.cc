#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

using Records = std::vector<std::string>;

Node Change(VfsFixture& f, NodeId node, const AttributeChange& change,
            const Caller& caller = kUser) {
  return Must(f.view().SetAttributes(node, change, std::nullopt, caller));
}

uint32_t ModeOf(const Node& node) { return node.attributes.mode & 07777; }

AttributeChange Mode(uint32_t mode) {
  AttributeChange change;
  change.mode = mode;
  return change;
}

TEST_CASE("A change of a clean file's attributes is a record at once") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  f.clock().Advance(kSecond);
  const Node changed = Change(f, node, Mode(0600));
  CHECK(ModeOf(changed) == 0600);
  CHECK(changed.attributes.ctime == f.clock().Now());
  CHECK(changed.attributes.mtime == f.clock().Now() - kSecond);
  CHECK(f.Records() == Records{"put f", "attr f"});
}

TEST_CASE("A change of a dirty or new file's attributes joins its commit") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  f.Write(created.opened.handle, 0, "x");
  AttributeChange change = Mode(0600);
  change.mtime = 5;
  CHECK(Change(f, created.node.id, change).attributes.mtime == 5);
  f.Close(created.opened.handle);
  CHECK(f.Records() == Records{"put f"});
  const Node node = Must(f.view().GetAttributes(created.node.id));
  CHECK(ModeOf(node) == 0600);
  CHECK(node.attributes.mtime == 5);
}

TEST_CASE("Times are exact to the nanosecond, before 1970 too") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  AttributeChange change;
  change.atime = -1'234'567'891;
  change.mtime_now = true;
  f.clock().Advance(77);
  Change(f, node, change);
  f.Restart();
  const Attributes attributes = Must(f.view().GetAttributes(node)).attributes;
  CHECK(attributes.atime == -1'234'567'891);
  CHECK(attributes.mtime == f.clock().Now());
}

TEST_CASE("A write sets mtime and ctime when it happens, and never atime") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  const Nanos made = f.clock().Now();
  f.clock().Advance(kSecond);
  f.Write(created.opened.handle, 0, "x");
  f.clock().Advance(kSecond);
  f.Close(created.opened.handle);
  const Attributes attributes = Must(f.view().GetAttributes(created.node.id)).attributes;
  CHECK(attributes.mtime == made + kSecond);
  CHECK(attributes.ctime == made + kSecond);
  CHECK(attributes.atime == made);
}

TEST_CASE("A new owner takes S_ISUID away, and S_ISGID where the group may run the file") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  Change(f, node, Mode(06755));
  AttributeChange chown;
  chown.uid = 5;
  CHECK(ModeOf(Change(f, node, chown, kRootUser)) == 0755);
  Change(f, node, Mode(02644));
  CHECK(ModeOf(Change(f, node, chown, kRootUser)) == 02644);
  const Node dir = Must(f.view().MakeDirectory(f.memory(), "d", 0755, kUser));
  Change(f, dir.id, Mode(02755));
  CHECK(ModeOf(Change(f, dir.id, chown, kRootUser)) == 02755);
}

TEST_CASE("A write takes the privileges of a file away from who may not keep them") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  Change(f, node, Mode(06755));
  const Opened opened = Must(f.view().Open(node, O_RDWR, kUser));
  Must(f.view().Write(opened.handle, 0, "y", false, kRootUser));
  CHECK(ModeOf(Must(f.view().GetAttributes(node))) == 06755);
  Must(f.view().Write(opened.handle, 0, "z", false, kUser));
  CHECK(ModeOf(Must(f.view().GetAttributes(node))) == 0755);
}

TEST_CASE("To lose its privileges and nothing else is for a file's owner to ask") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  AttributeChange loss;
  loss.kill_privileges = true;
  Change(f, node, Mode(06755));
  Caller other = kUser;
  other.uid = kUser.uid + 1;
  Must(f.view().SetAttributes(node, loss, std::nullopt, other));
  CHECK(ModeOf(Must(f.view().GetAttributes(node))) == 06755);
  for (const Caller& may : {kUser, kRootUser}) {
    Change(f, node, Mode(06755));
    Must(f.view().SetAttributes(node, loss, std::nullopt, may));
    CHECK(ModeOf(Must(f.view().GetAttributes(node))) == 0755);
  }
}

TEST_CASE("A truncation to the size that a file has changes its times all the same, as on ext4") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  f.clock().Advance(kSecond);
  AttributeChange same_size;
  same_size.size = 1;
  const Node truncated = Change(f, node, same_size);
  CHECK(truncated.attributes.mtime == f.clock().Now());
  CHECK(truncated.attributes.ctime == f.clock().Now());
  f.clock().Advance(kSecond);
  const Opened opened = Must(f.view().Open(node, O_RDWR, kUser));
  const Node through_handle = Must(f.view().SetAttributes(node, same_size, opened.handle, kUser));
  CHECK(through_handle.attributes.mtime == f.clock().Now());
  CHECK(through_handle.attributes.ctime == f.clock().Now());
}

TEST_CASE("Fallocate changes the times, whether it changes the content or not") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  f.clock().Advance(kSecond);
  const Opened opened = Must(f.view().Open(node, O_RDWR, kUser));
  Must(f.view().Allocate(opened.handle, FALLOC_FL_KEEP_SIZE, 0, 100, kUser));
  const Attributes attributes = Must(f.view().GetAttributes(node)).attributes;
  CHECK(attributes.mtime == f.clock().Now());
  CHECK(attributes.ctime == f.clock().Now());
}

TEST_CASE("A truncation by path is a record at once; one by handle waits for its commit") {
  VfsFixture f;
  const NodeId node = f.Put("f", "0123456789");
  AttributeChange change;
  change.size = 4;
  CHECK(Change(f, node, change).size == 4);
  CHECK(f.Records() == Records{"put f", "put f"});
  const Opened opened = Must(f.view().Open(node, O_RDWR, kUser));
  change.size = 6;
  Must(f.view().SetAttributes(node, change, opened.handle, kUser));
  CHECK(f.Records().size() == 2);
  f.Close(opened.handle);
  CHECK(f.Records().size() == 3);
  CHECK(f.Contents(node) == Bytes("0123\0\0", 6));
}

TEST_CASE("Truncations of what is no file, or too far, are told by their errno") {
  VfsFixture f;
  AttributeChange change;
  change.size = 0;
  const auto errno_of = [&](NodeId node) {
    return f.view().SetAttributes(node, change, std::nullopt, kUser).status().ToErrno();
  };
  CHECK(errno_of(f.memory()) == EISDIR);
  CHECK(errno_of(Must(f.view().MakeNode(f.memory(), "p", S_IFIFO | 0644, 0, kUser)).id) == EINVAL);
  change.size = uint64_t{1} << 53;
  CHECK(errno_of(f.Put("f", "x")) == EFBIG);
}

TEST_CASE("The file system's size is that of the disk below") {
  VfsFixture f;
  const FileSystemFacts facts = Must(f.view().StatFileSystem(kRootNode));
  CHECK(facts.block_size > 0);
  CHECK(facts.blocks >= facts.available_blocks);
}

}  // namespace
}  // namespace memoirfs::vfs
