#include "fs/daemon/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <future>
#include <thread>

#include "fs/daemon/control_client.h"
#include "store/base/json.h"
#include "store/volume/store_lock.h"
#include "tests/unit/fs/daemon/fake_session.h"
#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {
namespace {

class IgnoreParts final : public ReplySink {
 public:
  Status Progress(const volume::VerifyProgress&) override { return {}; }
  Status Item(const std::string&) override { return {}; }
  Status Data(ByteView) override { return {}; }
};

// A daemon over a store of one agent, "planner". Its signals are blocked while the test runs.
class Fixture {
 public:
  Fixture() {
    pthread_sigmask(SIG_BLOCK, nullptr, &signals_before_);
    ::setenv("XDG_STATE_HOME", (scratch_ / "state").c_str(), 1);
    REQUIRE(volume::InitStore(store()).ok());
    {
      auto opened = OpenedStore::Open(store(), {});
      REQUIRE(opened.ok());
      REQUIRE((*opened)->volume().AddAgent("planner", 1000, 1000).ok());
    }
    for (const char* name : {"a", "b"}) std::filesystem::create_directory(Place(name));
  }
  ~Fixture() {
    daemon.reset();
    ::unsetenv("XDG_STATE_HOME");
    pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void Start(std::chrono::milliseconds first_mount_timeout = std::chrono::minutes(10)) {
    DaemonOptions options;
    options.store = store();
    options.log_to_file = false;
    options.session_factory = fake.Factory();
    options.first_mount_timeout = first_mount_timeout;
    auto started = Daemon::Start(options);
    INFO(started.status().ToString());
    REQUIRE(started.ok());
    daemon = std::move(*started);
  }
  Status Mount(const std::string& name, std::optional<std::string> agent = std::nullopt) {
    return daemon->Mount({Place(name), std::move(agent), false, false});
  }
  // Through the socket, as the commands do.
  Result<std::string> Ask(Operation operation, const std::string& mountpoint = "") {
    Request request{.operation = operation};
    request.mountpoint = mountpoint;
    IgnoreParts sink;
    return AskDaemon(store(), request, sink);
  }
  std::future<Status> RunInBackground() {
    return std::async(std::launch::async, [this] { return daemon->Run(); });
  }
  std::string store() const { return scratch_ / "store"; }
  std::string Place(const std::string& name) const { return scratch_ / name; }

 private:
  const test::Scratch scratch_;
  sigset_t signals_before_{};

 public:
  test::FakeMounts fake;
  std::unique_ptr<Daemon> daemon;
};

}  // namespace

TEST_CASE("a daemon ends when its last mount is unmounted through its socket") {
  Fixture fixture;
  fixture.Start();
  REQUIRE(fixture.Mount("a").ok());
  REQUIRE(fixture.Mount("b", "planner").ok());
  auto ended = fixture.RunInBackground();
  CHECK(Json::parse(fixture.Ask(Operation::kUmount, fixture.Place("a")).value()).at("last") ==
        false);
  CHECK(Json::parse(fixture.Ask(Operation::kStatus).value()).at("mounts").size() == 1);
  CHECK(Json::parse(fixture.Ask(Operation::kUmount, fixture.Place("b")).value()).at("last") ==
        true);
  CHECK(ended.get().ok());
  CHECK(fixture.Ask(Operation::kStatus).code() == Code::kUnavailable);
}

TEST_CASE("a daemon ends when somebody takes its last mount away") {
  Fixture fixture;
  fixture.Start();
  REQUIRE(fixture.Mount("a").ok());
  fixture.fake.mounted.at(fixture.Place("a"))->Vanish();
  CHECK(fixture.daemon->Run().ok());
}

TEST_CASE("a daemon that is to end takes its mounts away and gives its store back") {
  Fixture fixture;
  fixture.Start();
  REQUIRE(fixture.Mount("a").ok());
  fixture.fake.unmount_fails[fixture.Place("a")] = Status(Code::kBusy, "in use");
  CHECK(OpenedStore::Open(fixture.store(), {}).code() == Code::kLocked);
  SECTION("by a request") {
    auto ended = fixture.RunInBackground();
    CHECK(fixture.Ask(Operation::kStop).ok());
    CHECK(ended.get().ok());
  }
  SECTION("by a signal") {
    // To this thread: others, as LevelDB's of an earlier test, have not blocked it.
    REQUIRE(::raise(SIGTERM) == 0);
    CHECK(fixture.daemon->Run().ok());
  }
  CHECK(fixture.daemon->Ending());
  CHECK(fixture.fake.mounted.empty());
  fixture.daemon.reset();
  CHECK(OpenedStore::Open(fixture.store(), {}).ok());
}

TEST_CASE("a daemon whose only mount fails ends, as one that nobody asks for a mount") {
  Fixture fixture;
  SECTION("failed") {
    fixture.Start();
    fixture.fake.mount_fails = Status(Code::kPermission, "no /dev/fuse");
    CHECK(fixture.Mount("a").code() == Code::kPermission);
  }
  SECTION("not asked") { fixture.Start(std::chrono::milliseconds(1)); }
  CHECK(fixture.daemon->Run().ok());
}

TEST_CASE("a daemon mounts only existing agents, at places outside its store, and once") {
  Fixture fixture;
  fixture.Start();
  CHECK(fixture.Mount("a", "nobody").code() == Code::kNotFound);
  CHECK(fixture.daemon->Mount({fixture.store() + "/packs", std::nullopt, false, false}).code() ==
        Code::kInvalidArgument);
  CHECK(fixture.Mount("missing").code() == Code::kNotFound);
  CHECK(fixture.fake.calls.empty());
  REQUIRE(fixture.Mount("a").ok());
  CHECK(fixture.Mount("a").code() == Code::kBusy);
}

TEST_CASE("repair is refused while a store is mounted") {
  Fixture fixture;
  fixture.Start();
  REQUIRE(fixture.Mount("a").ok());
  CHECK(fixture.Ask(Operation::kFsck).code() == Code::kBusy);
}

}  // namespace memoirfs::daemon
