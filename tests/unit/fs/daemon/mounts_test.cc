#include "fs/daemon/mounts.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <memory>

#include "store/base/clock.h"
#include "tests/unit/fs/daemon/fake_session.h"
#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {
namespace {

using Calls = std::vector<std::string>;

// A table of mounts over a store of one agent, "planner".
class Fixture {
 public:
  Fixture() {
    REQUIRE(volume::InitStore(scratch_ / "store", Options()).ok());
    io_ = OpenRealIo(scratch_ / "store").value();
    volume_ = volume::Volume::Open(*io_, Clock::Real(), Options()).value();
    stream = volume_->AddAgent("planner", 1000, 1000).value().stream;
    vfs_ = std::make_unique<vfs::Vfs>(*volume_, vfs::VfsOptions{.background = false});
    mounts = std::make_unique<Mounts>(*vfs_, "/the/store", fake.Factory(), [this] { ++changes; });
  }
  ~Fixture() { mounts->UnmountAll(); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  Status Mount(const std::string& mountpoint, std::optional<std::string> agent = std::nullopt) {
    return mounts->Mount({mountpoint, std::move(agent), false, false});
  }
  // Leaves content that is written and not committed.
  void WriteDirty(const std::string& mountpoint) {
    const vfs::Caller user{1000, 1000, 0, 022};
    vfs::View& view = fake.mounted.at(mountpoint)->view();
    const auto agent = view.Lookup(vfs::NodeId(1), "planner");
    REQUIRE(agent.ok());
    const auto memory = view.Lookup(agent->id, "memory");
    REQUIRE(memory.ok());
    const auto made = view.Create(memory->id, "notes.md", 0644, O_RDWR, user);
    REQUIRE(made.ok());
    REQUIRE(view.Write(made->opened.handle, 0, "dirty", false, user).ok());
    REQUIRE(vfs_->dirty_bytes() > 0);
  }
  uint64_t dirty_bytes() const { return vfs_->dirty_bytes(); }
  bool IsRecorded(const std::string& path) const {
    return volume_->FindVersion(stream, path, std::nullopt).ok();
  }

  test::FakeMounts fake;
  int changes = 0;
  StreamId stream;

 private:
  static volume::VolumeOptions Options() {
    volume::VolumeOptions options;
    options.background = false;
    options.journal.file_size = 1U << 20;
    options.journal.reserve = 128U << 10;
    return options;
  }

  const test::Scratch scratch_;
  std::unique_ptr<FileIo> io_;
  std::unique_ptr<volume::Volume> volume_;
  std::unique_ptr<vfs::Vfs> vfs_;

 public:
  std::unique_ptr<Mounts> mounts;
};

}  // namespace

TEST_CASE("a mount is listed as it was asked for, with the store as its source") {
  Fixture fixture;
  REQUIRE(fixture.mounts->Mount({"/a", "planner", true, true}).ok());
  const auto listed = fixture.mounts->List();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].mountpoint == "/a");
  CHECK(listed[0].agent == "planner");
  CHECK(listed[0].read_only);
  CHECK(listed[0].allow_other);
  const fuse::SessionOptions& options = fixture.fake.mounted.at("/a")->options();
  CHECK(options.source == "/the/store");
  CHECK(options.read_only);
  CHECK(options.allow_other);
}

TEST_CASE("a place is mounted once, and is free again after it was unmounted") {
  Fixture fixture;
  REQUIRE(fixture.Mount("/a").ok());
  CHECK(fixture.Mount("/a").code() == Code::kBusy);
  REQUIRE(fixture.mounts->Unmount("/a", false).ok());
  CHECK(fixture.Mount("/a").ok());
  CHECK(fixture.fake.calls == Calls{"mount /a", "unmount /a", "mount /a"});
}

TEST_CASE("a mount that fails is not kept, and says so to whoever waits for work") {
  Fixture fixture;
  fixture.fake.mount_fails = Status(Code::kPermission, "no /dev/fuse");
  CHECK(fixture.Mount("/a").code() == Code::kPermission);
  CHECK(fixture.mounts->count() == 0);
  CHECK(fixture.changes == 1);
  fixture.fake.mount_fails = {};
  CHECK(fixture.Mount("/a", "nobody").code() == Code::kNotFound);
  CHECK(fixture.mounts->count() == 0);
  CHECK(fixture.Mount("/a").ok());
}

TEST_CASE("a table that was closed takes no mount, and only an empty one is closed") {
  Fixture fixture;
  fixture.fake.while_mounting = [&] { CHECK_FALSE(fixture.mounts->CloseIfEmpty()); };
  REQUIRE(fixture.Mount("/a").ok());
  CHECK_FALSE(fixture.mounts->CloseIfEmpty());
  REQUIRE(fixture.Mount("/b").ok());
  fixture.mounts->UnmountAll();
  CHECK(fixture.Mount("/a").code() == Code::kUnavailable);
  CHECK(fixture.mounts->CloseIfEmpty());
}

TEST_CASE("a mount being made counts, is not listed, and is neither made twice nor unmounted") {
  Fixture fixture;
  bool asked = false;
  fixture.fake.while_mounting = [&] {
    if (std::exchange(asked, true)) return;
    CHECK(fixture.mounts->count() == 1);
    CHECK(fixture.mounts->List().empty());
    CHECK(fixture.Mount("/a").code() == Code::kBusy);
    CHECK(fixture.mounts->Unmount("/a", false).code() == Code::kBusy);
  };
  REQUIRE(fixture.Mount("/a").ok());
  CHECK(asked);
  CHECK(fixture.mounts->List().size() == 1);
}

TEST_CASE("what is not mounted cannot be unmounted") {
  Fixture fixture;
  CHECK(fixture.mounts->Unmount("/a", false).code() == Code::kNotFound);
}

TEST_CASE("a busy mount stays and serves, until it is taken away lazily") {
  Fixture fixture;
  REQUIRE(fixture.Mount("/a").ok());
  fixture.fake.unmount_fails["/a"] = Status(Code::kBusy, "in use");
  const Status busy = fixture.mounts->Unmount("/a", false);
  CHECK(busy.code() == Code::kBusy);
  CHECK(busy.message().find("fuser") != std::string::npos);
  CHECK(fixture.mounts->List().size() == 1);
  CHECK(fixture.mounts->Unmount("/a", true).ok());
  CHECK(fixture.mounts->count() == 0);
}

TEST_CASE("unmounting records what was written and not committed") {
  Fixture fixture;
  REQUIRE(fixture.Mount("/a").ok());
  fixture.WriteDirty("/a");
  SECTION("one mount") { REQUIRE(fixture.mounts->Unmount("/a", false).ok()); }
  SECTION("all mounts") { fixture.mounts->UnmountAll(); }
  SECTION("by somebody else") {
    fixture.fake.mounted.at("/a")->Vanish();
    fixture.mounts->Reap();
  }
  CHECK(fixture.mounts->count() == 0);
  CHECK(fixture.dirty_bytes() == 0);
  CHECK(fixture.IsRecorded("notes.md"));
}

TEST_CASE("a mount that somebody took away is not listed, is told of, and its place is free") {
  Fixture fixture;
  REQUIRE(fixture.Mount("/a").ok());
  fixture.fake.mounted.at("/a")->Vanish();
  CHECK(fixture.changes == 1);
  CHECK(fixture.mounts->List().empty());
  CHECK(fixture.mounts->count() == 1);
  CHECK(fixture.Mount("/a").ok());
  fixture.mounts->Reap();
  CHECK(fixture.mounts->count() == 1);
  CHECK(fixture.fake.mounted.count("/a") == 1);
}

TEST_CASE("at the end every mount goes, busy ones lazily") {
  Fixture fixture;
  for (const char* place : {"/a", "/b"}) REQUIRE(fixture.Mount(place).ok());
  fixture.fake.unmount_fails["/a"] = Status(Code::kBusy, "in use");
  fixture.mounts->UnmountAll();
  CHECK(fixture.mounts->count() == 0);
  CHECK(fixture.fake.mounted.empty());
  CHECK(fixture.fake.calls == Calls{"mount /a", "mount /b", "unmount /a", "lazy /a", "unmount /b"});
}

}  // namespace memoirfs::daemon
