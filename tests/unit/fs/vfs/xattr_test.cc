#include <sys/xattr.h>

#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

TEST_CASE("user.* attributes are set, replaced, listed and removed by their flags") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  View& view = f.view();
  CHECK(view.GetXattr(node, "user.a").code() == Code::kNoAttribute);
  CHECK(view.SetXattr(node, "user.a", "1", XATTR_REPLACE, kUser).code() == Code::kNoAttribute);
  Must(view.SetXattr(node, "user.a", "1", XATTR_CREATE, kUser));
  CHECK(view.SetXattr(node, "user.a", "2", XATTR_CREATE, kUser).code() == Code::kExists);
  Must(view.SetXattr(node, "user.a", Bytes("2\0\xff", 3), XATTR_REPLACE, kUser));
  CHECK(Must(view.GetXattr(node, "user.a")) == Bytes("2\0\xff", 3));
  CHECK(Must(view.ListXattrs(node)) == std::vector<std::string>{"user.a"});
  Must(view.RemoveXattr(node, "user.a", kUser));
  CHECK(view.RemoveXattr(node, "user.a", kUser).code() == Code::kNoAttribute);
}

TEST_CASE("An attribute of a file that is not committed commits it first") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  Must(f.view().SetXattr(created.node.id, "user.a", "1", 0, kUser));
  CHECK(f.Records() == std::vector<std::string>{"put f", "xattr f"});
}

TEST_CASE("Attributes of an open file without a name work, and are not recorded") {
  VfsFixture f;
  View& view = f.view();
  const NodeId saved = f.Put("saved", "x");
  Must(view.SetXattr(saved, "user.a", "1", 0, kUser));
  Must(view.SetXattr(saved, "user.b", "1", 0, kUser));
  const HandleId handle = Must(view.Open(saved, O_RDWR, kUser)).handle;
  const View::Created never_saved = f.Create("never saved");
  Must(view.Unlink(f.memory(), "saved", kUser));
  Must(view.Unlink(f.memory(), "never saved", kUser));
  const std::vector<std::string> before = f.Records();

  for (const NodeId node : {saved, never_saved.node.id}) {
    f.clock().Advance(kSecond);
    Must(view.SetXattr(node, "user.a", "2", 0, kUser));
    CHECK(Must(view.GetAttributes(node)).attributes.ctime == f.clock().Now());
    CHECK(Must(view.GetXattr(node, "user.a")) == "2");
    CHECK(view.SetXattr(node, "user.a", "3", XATTR_CREATE, kUser).code() == Code::kExists);
    CHECK(view.SetXattr(node, "user.c", "3", XATTR_REPLACE, kUser).code() == Code::kNoAttribute);
    CHECK(view.SetXattr(node, "user.\xff", "v", 0, kUser).ToErrno() == EILSEQ);
    CHECK(view.SetXattr(node, "user.a", Bytes(65'537, 'v'), 0, kUser).ToErrno() == E2BIG);
    Must(view.RemoveXattr(node, "user.a", kUser));
    CHECK(view.RemoveXattr(node, "user.a", kUser).code() == Code::kNoAttribute);
    Must(view.SetXattr(node, "user.c", "4", XATTR_CREATE, kUser));
  }
  CHECK(Must(view.ListXattrs(saved)) == std::vector<std::string>{"user.b", "user.c"});
  CHECK(Must(view.ListXattrs(never_saved.node.id)) == std::vector<std::string>{"user.c"});
  CHECK(f.Records() == before);

  f.Close(handle);
  f.Close(never_saved.opened.handle);
  CHECK(f.Records() == before);
  CHECK(view.SetXattr(saved, "user.a", "5", 0, kUser).code() == Code::kNotFound);
}

TEST_CASE("Other namespaces are not supported, and names must be UTF-8") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  for (const char* name : {"security.capability", "system.posix_acl_access", "trusted.x"}) {
    CHECK(f.view().GetXattr(node, name).status().ToErrno() == EOPNOTSUPP);
    CHECK(f.view().SetXattr(node, name, "v", 0, kUser).ToErrno() == EOPNOTSUPP);
  }
  CHECK(f.view().SetXattr(node, "user.\xff", "v", 0, kUser).ToErrno() == EILSEQ);
}

TEST_CASE("user.memoir.* say what the store knows of a file, unlisted and not to be set") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  const NodeId node = created.node.id;
  const auto fact = [&](const char* name) { return f.view().GetXattr(node, name); };
  CHECK(Must(fact("user.memoir.state")) == "uncommitted");
  f.Write(created.opened.handle, 0, "x");
  Must(f.view().Flush(created.opened.handle));
  const std::string sha256 = Sha256::Of("x").ToHex();
  CHECK(Must(fact("user.memoir.state")) == "clean");
  CHECK(Must(fact("user.memoir.sha256")) == sha256);
  CHECK(Must(fact("user.memoir.content")) == "flat:" + sha256);
  CHECK(Must(fact("user.memoir.seq")) != "0");
  f.Write(created.opened.handle, 0, Bytes(300'000, 'x'));
  CHECK(Must(fact("user.memoir.state")) == "dirty");
  Must(f.view().Flush(created.opened.handle));
  const std::string long_sha256 = Sha256::Of(Bytes(300'000, 'x')).ToHex();
  CHECK(Must(fact("user.memoir.sha256")) == long_sha256);
  CHECK(Must(fact("user.memoir.content")).substr(0, 5) == "tree:");
  CHECK(fact("user.memoir.other").code() == Code::kNoAttribute);
  CHECK(Must(f.view().ListXattrs(node)).empty());
  CHECK(f.view().SetXattr(node, "user.memoir.seq", "1", 0, kUser).ToErrno() == EPERM);
}

}  // namespace
}  // namespace memoirfs::vfs
