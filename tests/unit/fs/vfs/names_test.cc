#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

using volume::RenameMode;

TEST_CASE("Names that are too long or not UTF-8 are told by their errno") {
  VfsFixture f;
  const std::string longest(255, 'n');
  const std::string too_long(256, 'n');
  Must(f.view().MakeDirectory(f.memory(), longest, 0755, kUser));
  CHECK(f.view().MakeDirectory(f.memory(), too_long, 0755, kUser).status().ToErrno() ==
        ENAMETOOLONG);
  CHECK(f.view().Lookup(f.memory(), too_long).status().ToErrno() == ENAMETOOLONG);
  for (const char* illegal : {"\xff", "a\xc3", "\xed\xa0\x80"}) {
    CHECK(f.view().Create(f.memory(), illegal, 0644, O_RDWR, kUser).status().ToErrno() == EILSEQ);
    CHECK(f.view()
              .Rename(f.memory(), longest, f.memory(), illegal, RenameMode::kReplace, kUser)
              .ToErrno() == EILSEQ);
  }
}

TEST_CASE("New nodes belong to the caller and obey the umask") {
  VfsFixture f;
  const Caller caller{7, 8, 0, 027};
  const Node dir = Must(f.view().MakeDirectory(f.memory(), "d", 0777, caller));
  CHECK(dir.attributes.mode == (S_IFDIR | 0750));
  CHECK(dir.attributes.uid == 7);
  CHECK(dir.attributes.gid == 8);
  const Node link = Must(f.view().MakeSymlink(f.memory(), "l", "target", caller));
  CHECK(link.attributes.mode == (S_IFLNK | 0777));
  CHECK(link.size == 6);
  CHECK(Must(f.view().ReadLink(link.id)) == "target");
}

TEST_CASE("A directory with S_ISGID gives its group away, and the bit to directories") {
  VfsFixture f;
  const Node dir = Must(f.view().MakeDirectory(f.memory(), "d", 0755, kUser));
  AttributeChange change;
  change.mode = 02775;
  change.gid = 55;
  Must(f.view().SetAttributes(dir.id, change, std::nullopt, kRootUser));
  const Node sub = Must(f.view().MakeDirectory(dir.id, "sub", 0755, kUser));
  CHECK(sub.attributes.gid == 55);
  CHECK((sub.attributes.mode & S_ISGID) != 0);
  const Node file = Must(f.view().Create(dir.id, "f", 0644, O_RDWR, kUser)).node;
  CHECK(file.attributes.gid == 55);
  CHECK((file.attributes.mode & S_ISGID) == 0);
}

TEST_CASE("Mknod makes regular files, fifos and sockets, and no devices") {
  VfsFixture f;
  const Node file = Must(f.view().MakeNode(f.memory(), "f", S_IFREG | 0644, 0, kUser));
  CHECK(f.Records() == std::vector<std::string>{"put f"});
  CHECK(f.Contents(file.id).empty());
  CHECK(
      S_ISFIFO(Must(f.view().MakeNode(f.memory(), "p", S_IFIFO | 0644, 0, kUser)).attributes.mode));
  CHECK(f.view().MakeNode(f.memory(), "b", S_IFBLK | 0644, 1, kUser).code() == Code::kPermission);
}

TEST_CASE("Links are one inode in every respect") {
  VfsFixture f;
  const NodeId node = f.Put("a", "x");
  const Node link = Must(f.view().MakeLink(node, f.memory(), "b", kUser));
  CHECK(link.id == node);
  CHECK(link.nlink == 2);
  const Opened opened = Must(f.view().Open(node, O_WRONLY | O_APPEND, kUser));
  f.Write(opened.handle, 0, "y");
  Must(f.view().Unlink(f.memory(), "a", kUser));
  f.Close(opened.handle);
  CHECK(f.ContentsOf("b") == "xy");
  CHECK(Must(f.view().GetAttributes(node)).nlink == 1);
}

TEST_CASE("Renames replace, refuse to and exchange") {
  VfsFixture f;
  f.Put("a", "A");
  f.Put("b", "B");
  const auto rename = [&](RenameMode mode) {
    return f.view().Rename(f.memory(), "a", f.memory(), "b", mode, kUser);
  };
  CHECK(rename(RenameMode::kNoReplace).code() == Code::kExists);
  Must(rename(RenameMode::kExchange));
  CHECK(f.ContentsOf("a") == "B");
  CHECK(f.ContentsOf("b") == "A");
  Must(rename(RenameMode::kReplace));
  CHECK(f.ContentsOf("b") == "B");
  CHECK(f.view().Lookup(f.memory(), "a").code() == Code::kNotFound);
}

TEST_CASE("An exchange commits both files first, and a rename over a new file removes it") {
  VfsFixture f;
  const View::Created a = f.Create("a");
  const View::Created b = f.Create("b");
  f.Write(a.opened.handle, 0, "A");
  f.Write(b.opened.handle, 0, "B");
  Must(f.view().Rename(f.memory(), "a", f.memory(), "b", RenameMode::kExchange, kUser));
  CHECK(f.ContentsOf("b") == "A");
  const View::Created c = f.Create("c");
  f.Write(c.opened.handle, 0, "C");
  Must(f.view().Rename(f.memory(), "a", f.memory(), "c", RenameMode::kReplace, kUser));
  CHECK(f.ContentsOf("c") == "B");
  CHECK(Must(f.view().Read(c.opened.handle, 0, 10)) == "C");
}

TEST_CASE("A directory's times are those of its last change, not of a commit that follows") {
  VfsFixture f;
  const auto times = [&] { return Must(f.view().GetAttributes(f.memory())).attributes; };
  const View::Created created = f.Create("f");
  f.clock().Advance(kSecond);
  AttributeChange past;
  past.mtime = 5;
  Must(f.view().SetAttributes(f.memory(), past, std::nullopt, kUser));
  f.clock().Advance(kSecond);
  f.Close(created.opened.handle);
  CHECK(times().mtime == 5);
  CHECK(times().ctime == f.clock().Now() - kSecond);

  AttributeChange future;
  future.mtime = f.clock().Now() + 1000 * kSecond;
  Must(f.view().SetAttributes(f.memory(), future, std::nullopt, kUser));
  f.clock().Advance(kSecond);
  Must(f.view().MakeDirectory(f.memory(), "d", 0755, kUser));
  CHECK(times().mtime == f.clock().Now());
  f.Restart();
  CHECK(times().mtime == f.clock().Now());
}

TEST_CASE("Removing a file that was never committed changes its times and its directory's") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  f.clock().Advance(kSecond);
  Must(f.view().Unlink(f.memory(), "f", kUser));
  const Attributes directory = Must(f.view().GetAttributes(f.memory())).attributes;
  CHECK(directory.mtime == f.clock().Now());
  CHECK(directory.ctime == f.clock().Now());
  CHECK(Must(f.view().GetAttributes(created.node.id)).attributes.ctime == f.clock().Now());
}

TEST_CASE("Directories are removed when they are empty, files by unlink") {
  VfsFixture f;
  const Node dir = Must(f.view().MakeDirectory(f.memory(), "d", 0755, kUser));
  const View::Created file = Must(f.view().Create(dir.id, "f", 0644, O_RDWR, kUser));
  CHECK(f.view().RemoveDirectory(f.memory(), "d", kUser).ToErrno() == ENOTEMPTY);
  CHECK(f.view().RemoveDirectory(dir.id, "f", kUser).ToErrno() == ENOTDIR);
  CHECK(f.view().Unlink(f.memory(), "d", kUser).ToErrno() == EISDIR);
  CHECK(f.view().Lookup(file.node.id, "x").status().ToErrno() != 0);
  Must(f.view().Unlink(dir.id, "f", kUser));
  Must(f.view().RemoveDirectory(f.memory(), "d", kUser));
  CHECK(f.view().Unlink(f.memory(), "d", kUser).ToErrno() == ENOENT);
}

TEST_CASE("Nothing moves or links from one agent to another") {
  VfsFixture f;
  const NodeId other = RealNode(Must(f.volume().AddAgent("bob", 1, 1)).stream, kRootInode);
  const NodeId node = f.Put("f", "x");
  CHECK(f.view().Rename(f.memory(), "f", other, "f", RenameMode::kReplace, kUser).ToErrno() ==
        EXDEV);
  CHECK(f.view().MakeLink(node, other, "f", kUser).status().ToErrno() == EXDEV);
}

TEST_CASE("Create of a name that exists opens nothing, for nobody checked the permissions") {
  VfsFixture f;
  f.Put("f", "theirs");
  CHECK(f.view().Create(f.memory(), "f", 0644, O_RDWR, kUser).code() == Code::kStale);
  CHECK(f.view().Create(f.memory(), "f", 0644, O_RDWR | O_EXCL, kUser).status().code() ==
        Code::kExists);
}

TEST_CASE("The chain says which process did it") {
  VfsFixture f;
  Caller caller = kUser;
  caller.pid = ::getpid();
  Must(f.view().MakeDirectory(f.memory(), "d", 0755, caller));
  const chain::Actor actor = f.Changes().at(0).actor;
  CHECK(actor.pid == caller.pid);
  CHECK(actor.comm == "unit_vfs");
}

}  // namespace
}  // namespace memoirfs::vfs
