// Each operation's request and answer, byte for byte as the protocol has them.

#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/xattr.h>

#include <set>

#include "tests/unit/fs/fuse/fixture.h"

namespace memoirfs::testing {
namespace {

constexpr double kDay = 86'400;

std::string Name(std::string_view name) { return std::string(name).append(1, '\0'); }

fuse_open_out OpenedOf(const FakeKernel::Answer& answer) { return answer.As<fuse_open_out>(); }

TEST_CASE("a name that exists is answered with its node, to be cached for a day") {
  Fixture<> fixture;
  const uint64_t node = fixture.MakeFile("a", "hello");
  const auto found = fixture.kernel.Lookup(kRoot, "a");
  REQUIRE(found.error == 0);
  const auto entry = found.As<fuse_entry_out>();
  CHECK(entry.nodeid == node);
  CHECK(entry.attr.ino == node);
  CHECK(entry.attr.size == 5);
  CHECK(entry.attr.blksize == 128 * 1024);
  CHECK(static_cast<double>(entry.entry_valid) == kDay);
  CHECK(static_cast<double>(entry.attr_valid) == kDay);

  fixture.view->SetCacheable(vfs::NodeId(node), false);
  const auto again = fixture.kernel.Lookup(kRoot, "a").As<fuse_entry_out>();
  CHECK(static_cast<double>(again.entry_valid) == kDay);
  CHECK(again.attr_valid == 0);
  CHECK(fixture.kernel.GetAttr(node).As<fuse_attr_out>().attr_valid == 0);
}

TEST_CASE("a missing name is cached for a day") {
  Fixture<> fixture;
  const uint64_t directory =
      fixture.kernel.MakeDirectory(kRoot, "d", 0755).As<fuse_entry_out>().nodeid;
  const auto missing = fixture.kernel.Lookup(directory, "nothing");
  REQUIRE(missing.error == 0);
  CHECK(missing.As<fuse_entry_out>().nodeid == 0);
  CHECK(static_cast<double>(missing.As<fuse_entry_out>().entry_valid) == kDay);
  const uint64_t file = fixture.MakeFile("f");
  CHECK(fixture.kernel.Lookup(file, "x").error == ENOTDIR);
}

TEST_CASE("a file is created, written, read, flushed and released") {
  Fixture<> fixture;
  FakeKernel& kernel = fixture.kernel;
  const auto created = kernel.Create(kRoot, "f", O_RDWR, S_IFREG | 0640);
  REQUIRE(created.error == 0);
  const auto entry = created.As<fuse_entry_out>();
  CHECK(entry.attr.uid == 1000);
  CHECK(entry.attr.gid == 1001);
  CHECK(entry.attr.mode == (S_IFREG | 0640));
  const uint64_t handle = Fixture<>::HandleOf(created);
  CHECK((Fixture<>::OpenedOf(created).open_flags & FOPEN_NOFLUSH) == 0);

  CHECK(kernel.Write(entry.nodeid, handle, 0, "hello world").As<fuse_write_out>().size == 11);
  CHECK(kernel.Read(entry.nodeid, handle, 6, 100).body == "world");
  CHECK(kernel.Read(entry.nodeid, handle, 11, 100).body.empty());
  CHECK(kernel.Flush(entry.nodeid, handle).error == 0);
  CHECK(kernel.Ask(FUSE_FSYNC, entry.nodeid, Raw(fuse_fsync_in{handle, 0, 0})).error == 0);
  CHECK(fixture.view->open_handles() == 1);
  CHECK(kernel.Release(entry.nodeid, handle).error == 0);
  CHECK(fixture.view->open_handles() == 0);
  CHECK(kernel.Read(entry.nodeid, handle, 0, 1).error == EINVAL);
}

TEST_CASE("opening says what the kernel may keep, and that readers need no flush") {
  Fixture<> fixture;
  const uint64_t node = fixture.MakeFile("f", "content");
  const auto reader = fixture.kernel.Open(node, O_RDONLY);
  CHECK(OpenedOf(reader).open_flags == (FOPEN_KEEP_CACHE | FOPEN_NOFLUSH));
  const auto writer = fixture.kernel.Open(node, O_WRONLY | O_TRUNC);
  CHECK(OpenedOf(writer).open_flags == FOPEN_KEEP_CACHE);
  CHECK(fixture.kernel.GetAttr(node).As<fuse_attr_out>().attr.size == 0);
  const auto created = fixture.kernel.Create(kRoot, "r", O_RDONLY, S_IFREG | 0600);
  CHECK((Fixture<>::OpenedOf(created).open_flags & FOPEN_NOFLUSH) != 0);
}

struct VirtualView : MemoryView {
  Result<vfs::Opened> Open(vfs::NodeId node, int flags, const vfs::Caller& caller) override {
    auto opened = MemoryView::Open(node, flags, caller);
    if (opened.ok()) {
      opened->direct_io = true;
      opened->keep_cache = false;
    }
    return opened;
  }
};

TEST_CASE("a virtual file of unknown size is read past the cache") {
  Fixture<VirtualView> fixture;
  const uint64_t node = fixture.MakeFile("status.json");
  CHECK(OpenedOf(fixture.kernel.Open(node, O_RDONLY)).open_flags ==
        (FOPEN_DIRECT_IO | FOPEN_NOFLUSH));
}

TEST_CASE("a handle opened for appending writes at the end, whatever the offset is") {
  Fixture<> fixture;
  const uint64_t node = fixture.MakeFile("log", "one\n");
  const uint64_t handle = OpenedOf(fixture.kernel.Open(node, O_RDWR | O_APPEND)).fh;
  CHECK(fixture.kernel.Write(node, handle, 0, "two\n").error == 0);
  CHECK(fixture.kernel.Read(node, handle, 0, 100).body == "one\ntwo\n");
}

TEST_CASE("pages of a mapping are written where they belong, also for an appending handle") {
  Fixture<> fixture;
  const uint64_t node = fixture.MakeFile("log", "one\n");
  const uint64_t handle = OpenedOf(fixture.kernel.Open(node, O_RDWR | O_APPEND)).fh;
  CHECK(fixture.kernel.Write(node, handle, 0, "ONE\n", FUSE_WRITE_CACHE).error == 0);
  CHECK(fixture.kernel.Read(node, handle, 0, 100).body == "ONE\n");
}

TEST_CASE("attributes are set as asked") {
  Fixture<> fixture;
  const uint64_t node = fixture.MakeFile("f", "content");
  fuse_setattr_in in{};
  in.valid = FATTR_MODE | FATTR_SIZE | FATTR_MTIME | FATTR_UID;
  in.mode = S_IFREG | 0600;
  in.size = 3;
  in.mtime = 12;
  in.mtimensec = 34;
  in.uid = 77;
  const auto changed = fixture.kernel.Ask(FUSE_SETATTR, node, Raw(in));
  REQUIRE(changed.error == 0);
  const fuse_attr attr = changed.As<fuse_attr_out>().attr;
  CHECK(attr.mode == (S_IFREG | 0600));
  CHECK(attr.size == 3);
  CHECK(attr.mtime == 12);
  CHECK(attr.mtimensec == 34);
  CHECK(attr.uid == 77);
  CHECK(attr.gid == 1001);
}

TEST_CASE("links, symlinks and nodes are made and removed") {
  Fixture<> fixture;
  FakeKernel& kernel = fixture.kernel;
  const uint64_t node = fixture.MakeFile("f");
  const auto linked =
      kernel.Ask(FUSE_LINK, kRoot, std::string(Raw(fuse_link_in{node})) + Name("g"));
  CHECK(linked.As<fuse_entry_out>().nodeid == node);
  CHECK(linked.As<fuse_entry_out>().attr.nlink == 2);

  const auto symlink = kernel.Ask(FUSE_SYMLINK, kRoot, Name("s") + Name("to/there"));
  REQUIRE(symlink.error == 0);
  CHECK(kernel.Ask(FUSE_READLINK, symlink.As<fuse_entry_out>().nodeid).body == "to/there");

  fuse_mknod_in fifo{};
  fifo.mode = S_IFIFO | 0600;
  CHECK(kernel.Ask(FUSE_MKNOD, kRoot, std::string(Raw(fifo)) + Name("p")).error == 0);
  fifo.mode = S_IFBLK | 0600;
  CHECK(kernel.Ask(FUSE_MKNOD, kRoot, std::string(Raw(fifo)) + Name("b")).error == EPERM);

  const auto directory = kernel.MakeDirectory(kRoot, "d", 0750);
  CHECK(directory.As<fuse_entry_out>().attr.mode == (S_IFDIR | 0750));
  CHECK(kernel.Ask(FUSE_UNLINK, kRoot, Name("d")).error == EISDIR);
  CHECK(kernel.Ask(FUSE_RMDIR, kRoot, Name("d")).error == 0);
  CHECK(kernel.Ask(FUSE_UNLINK, kRoot, Name("g")).error == 0);
  CHECK(kernel.Ask(FUSE_UNLINK, kRoot, Name("g")).error == ENOENT);
  CHECK(kernel.GetAttr(node).As<fuse_attr_out>().attr.nlink == 1);
}

TEST_CASE("rename knows to replace, not to replace and to exchange, and nothing else") {
  Fixture<> fixture;
  FakeKernel& kernel = fixture.kernel;
  const uint64_t a = fixture.MakeFile("a"), b = fixture.MakeFile("b");
  CHECK(kernel.Rename(kRoot, "a", kRoot, "b", RENAME_NOREPLACE).error == EEXIST);
  CHECK(kernel.Rename(kRoot, "a", kRoot, "b", RENAME_EXCHANGE).error == 0);
  CHECK(kernel.Lookup(kRoot, "a").As<fuse_entry_out>().nodeid == b);
  CHECK(kernel.Rename(kRoot, "a", kRoot, "b", RENAME_WHITEOUT).error == EINVAL);
  CHECK(kernel.Rename(kRoot, "a", kRoot, "b", RENAME_NOREPLACE | RENAME_EXCHANGE).error == EINVAL);
  CHECK(kernel.Rename(kRoot, "b", kRoot, "a", 0).error == 0);
  CHECK(kernel.Lookup(kRoot, "a").As<fuse_entry_out>().nodeid == a);
  CHECK(kernel.Lookup(kRoot, "b").As<fuse_entry_out>().nodeid == 0);
}

TEST_CASE("directories are opened without the file system, and listed without a handle") {
  Fixture<> fixture;
  CHECK(fixture.kernel.Ask(FUSE_OPENDIR, kRoot, Raw(fuse_open_in{})).error == ENOSYS);
  CHECK(fixture.kernel.ReadDirectory(kRoot, 0, 4096, false).error == 0);
  CHECK(fixture.kernel.Ask(FUSE_FSYNCDIR, kRoot, Raw(fuse_fsync_in{})).error == 0);
}

TEST_CASE("a listing in small pieces shows each name once, with attributes where asked") {
  Fixture<> fixture;
  std::set<std::string> expected = {".", ".."};
  for (int i = 0; i < 50; ++i) expected.insert("file-" + std::to_string(i));
  for (const std::string& name : expected) {
    if (name[0] != '.') fixture.MakeFile(name, "abc");
  }
  for (const bool plus : {false, true}) {
    std::set<std::string> seen;
    for (uint64_t offset = 0;;) {
      const auto answer = fixture.kernel.ReadDirectory(kRoot, offset, 600, plus);
      REQUIRE(answer.error == 0);
      REQUIRE(answer.body.size() <= 600);
      const auto entries = FakeKernel::ParseListing(answer, plus);
      if (entries.empty()) break;
      for (const auto& entry : entries) {
        CHECK(seen.insert(entry.name).second);
        const bool counted = plus && entry.name[0] != '.';
        CHECK(entry.found.nodeid == (counted ? entry.ino : 0));
        if (counted) CHECK(entry.found.attr.size == 3);
        CHECK(entry.type == (entry.name[0] == '.' ? DT_DIR : DT_REG));
        offset = entry.offset;
      }
    }
    CHECK(seen == expected);
  }
}

TEST_CASE("a listing never allocates what a request claims") {
  Fixture<> fixture;
  CHECK(fixture.kernel.ReadDirectory(kRoot, 0, UINT32_MAX, true).error == 0);
}

TEST_CASE("extended attributes: size first, then value, and too little room") {
  Fixture<> fixture;
  FakeKernel& kernel = fixture.kernel;
  const uint64_t node = fixture.MakeFile("f");
  CHECK(kernel.SetXattr(node, "user.a", std::string("v\0w", 3), 0).error == 0);
  CHECK(kernel.SetXattr(node, "user.a", "v", XATTR_CREATE).error == EEXIST);
  CHECK(kernel.SetXattr(node, "user.b", "v", XATTR_REPLACE).error == ENODATA);
  CHECK(kernel.GetXattr(node, "user.a", 0).As<fuse_getxattr_out>().size == 3);
  CHECK(kernel.GetXattr(node, "user.a", 3).body == std::string("v\0w", 3));
  CHECK(kernel.GetXattr(node, "user.a", 2).error == ERANGE);
  CHECK(kernel.GetXattr(node, "user.none", 0).error == ENODATA);
  const auto list = kernel.Ask(FUSE_LISTXATTR, node, Raw(fuse_getxattr_in{100, 0}));
  CHECK(list.body == Name("user.a"));
  CHECK(kernel.Ask(FUSE_REMOVEXATTR, node, Name("user.a")).error == 0);
  CHECK(kernel.Ask(FUSE_REMOVEXATTR, node, Name("user.a")).error == ENODATA);
}

struct NoXattrs : MemoryView {
  Result<Bytes> GetXattr(vfs::NodeId, const std::string&) override { return Bytes("asked"); }
};

TEST_CASE("the capabilities of a file are denied without a look, and not with ENOSYS") {
  Fixture<NoXattrs> fixture;
  CHECK(fixture.kernel.GetXattr(kRoot, "security.capability", 100).error == EOPNOTSUPP);
  CHECK(fixture.kernel.GetXattr(kRoot, "user.a", 100).body == "asked");
}

TEST_CASE("space, holes and copies") {
  Fixture<> fixture;
  FakeKernel& kernel = fixture.kernel;
  const uint64_t node = fixture.MakeFile("f", "0123456789");
  const uint64_t handle = OpenedOf(kernel.Open(node, O_RDWR)).fh;

  const auto statfs = kernel.Ask(FUSE_STATFS, kRoot).As<fuse_statfs_out>().st;
  CHECK(statfs.bsize == 4096);
  CHECK(statfs.frsize == 4096);
  CHECK(statfs.bavail == statfs.bfree);
  CHECK(statfs.namelen == 255);

  fuse_fallocate_in allocate{};
  allocate.fh = handle;
  allocate.offset = 2;
  allocate.length = 3;
  allocate.mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  CHECK(kernel.Ask(FUSE_FALLOCATE, node, Raw(allocate)).error == 0);
  CHECK(kernel.Read(node, handle, 0, 10).body == std::string("01\0\0\0"
                                                             "56789",
                                                             10));
  allocate.mode = FALLOC_FL_COLLAPSE_RANGE;
  CHECK(kernel.Ask(FUSE_FALLOCATE, node, Raw(allocate)).error == EOPNOTSUPP);

  fuse_lseek_in seek{};
  seek.fh = handle;
  seek.whence = SEEK_HOLE;
  CHECK(kernel.Ask(FUSE_LSEEK, node, Raw(seek)).As<fuse_lseek_out>().offset == 10);
  seek.offset = 10;
  CHECK(kernel.Ask(FUSE_LSEEK, node, Raw(seek)).error == ENXIO);

  fuse_copy_file_range_in copy{};
  copy.fh_in = copy.fh_out = handle;
  copy.nodeid_out = node;
  copy.off_in = 5;
  copy.len = 3;
  CHECK(kernel.Ask(FUSE_COPY_FILE_RANGE, node, Raw(copy)).As<fuse_write_out>().size == 3);
  CHECK(kernel.Read(node, handle, 0, 4).body == std::string("567\0", 4));
  copy.flags = 1;
  CHECK(kernel.Ask(FUSE_COPY_FILE_RANGE, node, Raw(copy)).error == EINVAL);
}

TEST_CASE("an ioctl is not a terminal's; what is not there is ENOSYS; FORGET gets no answer") {
  Fixture<> fixture;
  FakeKernel& kernel = fixture.kernel;
  CHECK(kernel.Ask(FUSE_IOCTL, kRoot, Raw(fuse_ioctl_in{})).error == ENOTTY);
  CHECK(kernel.Ask(FUSE_GETLK, kRoot, Raw(fuse_lk_in{})).error == ENOSYS);
  CHECK(kernel.Ask(FUSE_SETLKW, kRoot, Raw(fuse_lk_in{})).error == ENOSYS);
  CHECK(kernel.Ask(FUSE_ACCESS, kRoot, Raw(fuse_access_in{})).error == ENOSYS);
  CHECK(kernel.Ask(FUSE_POLL, kRoot, Raw(fuse_poll_in{})).error == ENOSYS);
  CHECK(kernel.Ask(FUSE_TMPFILE, kRoot, Raw(fuse_create_in{})).error == ENOSYS);
  CHECK(kernel.Ask(9999, kRoot).error == ENOSYS);

  kernel.Send(FUSE_FORGET, kRoot, Raw(fuse_forget_in{1}));
  fuse_batch_forget_in batch{1, 0};
  kernel.Send(FUSE_BATCH_FORGET, 0,
              std::string(Raw(batch)) + std::string(Raw(fuse_forget_one{kRoot, 1})));
  CHECK(kernel.GetAttr(kRoot).error == 0);
  CHECK_FALSE(kernel.HasUnread());
}

struct ThrowingView : MemoryView {
  Result<Bytes> Read(vfs::HandleId, uint64_t, size_t) override {
    throw std::runtime_error("a fault of the test");
  }
  Status Flush(vfs::HandleId) override { return Status(Code::kQuota, "full"); }
};

TEST_CASE("an exception in the view is EIO and a line in the log, and the session goes on") {
  const CapturedLog log;
  Fixture<ThrowingView> fixture;
  const uint64_t node = fixture.MakeFile("f");
  const uint64_t handle = OpenedOf(fixture.kernel.Open(node, O_RDWR)).fh;
  CHECK(fixture.kernel.Read(node, handle, 0, 1).error == EIO);
  CHECK_THAT(log.Text(), Catch::Contains("fuse.read exception: a fault of the test"));
  CHECK(fixture.kernel.Flush(node, handle).error == EDQUOT);
  CHECK(fixture.kernel.GetAttr(node).error == 0);
}

struct WatchingView : MemoryView {
  Result<Created> Create(vfs::NodeId parent, const std::string& name, uint32_t mode, int flags,
                         const vfs::Caller& caller) override {
    seen = caller;
    seen_flags = flags;
    return MemoryView::Create(parent, name, mode, flags, caller);
  }
  Result<vfs::Opened> Open(vfs::NodeId node, int flags, const vfs::Caller& caller) override {
    seen = caller;
    seen_flags = flags;
    return MemoryView::Open(node, flags, caller);
  }
  Result<size_t> Write(vfs::HandleId handle, uint64_t offset, ByteView data, bool writeback,
                       const vfs::Caller& caller) override {
    seen = caller;
    return MemoryView::Write(handle, offset, data, writeback, caller);
  }
  vfs::Caller seen;
  int seen_flags = 0;
};

TEST_CASE("the view is told who asks and with which flags") {
  Fixture<WatchingView> fixture;
  fixture.kernel.ActAs({.uid = 5, .gid = 6, .pid = 7});
  REQUIRE(fixture.kernel.Create(kRoot, "f", O_WRONLY | O_APPEND | O_TRUNC, S_IFREG).error == 0);
  CHECK(fixture.view->seen.uid == 5);
  CHECK(fixture.view->seen.gid == 6);
  CHECK(fixture.view->seen.pid == 7);
  CHECK(fixture.view->seen_flags == (O_WRONLY | O_APPEND | O_TRUNC));
}

TEST_CASE("whether suid and sgid are to go is what the kernel says, request by request") {
  Fixture<WatchingView> fixture;
  FakeKernel& kernel = fixture.kernel;
  const auto created = kernel.Create(kRoot, "f", O_RDWR, S_IFREG | 0644);
  CHECK(fixture.view->seen.keeps_privileges);
  const uint64_t node = created.As<fuse_entry_out>().nodeid;
  const bool kills = GENERATE(false, true);
  INFO("kills " << kills);

  fuse_open_in open{};
  open.flags = O_RDWR | O_TRUNC;
  if (kills) open.open_flags = FUSE_OPEN_KILL_SUIDGID;
  const auto opened = kernel.Ask(FUSE_OPEN, node, Raw(open));
  REQUIRE(opened.error == 0);
  CHECK(fixture.view->seen.keeps_privileges == !kills);
  CHECK(fixture.view->seen_flags == (O_RDWR | O_TRUNC));

  fuse_create_in create{};
  create.flags = O_RDWR | O_TRUNC;
  create.mode = S_IFREG | 0644;
  if (kills) create.open_flags = FUSE_OPEN_KILL_SUIDGID;
  const std::string name("g\0", 2);
  REQUIRE(kernel.Ask(FUSE_CREATE, kRoot, std::string(Raw(create)) + name).error == 0);
  CHECK(fixture.view->seen.keeps_privileges == !kills);
  CHECK(fixture.view->seen_flags == (O_RDWR | O_TRUNC));

  fuse_write_in write{};
  write.fh = OpenedOf(opened).fh;
  write.size = 1;
  write.flags = O_RDWR;
  if (kills) write.write_flags = FUSE_WRITE_KILL_SUIDGID;
  REQUIRE(kernel.Ask(FUSE_WRITE, node, std::string(Raw(write)) + "x").error == 0);
  CHECK(fixture.view->seen.keeps_privileges == !kills);
}

TEST_CASE("a kernel that does not say whether suid and sgid go leaves that to the user id") {
  Fixture<WatchingView> fixture(FakeKernel::kAllCapabilities & ~uint32_t{FUSE_HANDLE_KILLPRIV_V2});
  fixture.kernel.Create(kRoot, "f", O_RDWR, S_IFREG | 0644);
  CHECK_FALSE(fixture.view->seen.keeps_privileges);
  fixture.kernel.ActAs({.uid = 0, .gid = 0, .pid = 1});
  fixture.kernel.Create(kRoot, "g", O_RDWR, S_IFREG | 0644);
  CHECK(fixture.view->seen.keeps_privileges);
}

}  // namespace
}  // namespace memoirfs::testing
