// What commands ask of a store, answered without a daemon.

#include <catch2/catch.hpp>
#include <cstdlib>

#include "fs/daemon/status_json.h"
#include "fs/daemon/store_service.h"
#include "store/base/json.h"
#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {
namespace {

class Collector final : public ReplySink {
 public:
  Status Progress(const volume::VerifyProgress&) override {
    return gone ? Status(Code::kIo, "the client went away") : Status();
  }
  Status Item(const std::string& json) override {
    items.push_back(json);
    return {};
  }
  Status Data(ByteView bytes) override {
    data += bytes;
    return {};
  }

  std::vector<std::string> items;
  Bytes data;
  bool gone = false;
};

// A daemon that has one mount.
class MountedHooks final : public ServingHooks {
 public:
  ServingFacts Facts() const override {
    ServingFacts facts;
    facts.serving = true;
    facts.mounts.push_back({"/mnt/planner", "planner", false, false, ""});
    return facts;
  }
};

class EndingHooks final : public ServingHooks {
 public:
  bool Ending() const override { return true; }
};

// A store of two agents, opened.
class Fixture {
 public:
  Fixture() {
    ::setenv("XDG_STATE_HOME", (scratch_ / "state").c_str(), 1);
    REQUIRE(volume::InitStore(path()).ok());
    Open();
    for (const char* name : {"planner", "coder"}) {
      Request request{.operation = Operation::kAgentAdd};
      request.agent = name;
      REQUIRE(Ask(request).ok());
    }
  }
  ~Fixture() {
    store_.reset();
    ::unsetenv("XDG_STATE_HOME");
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void Open() {
    store_.reset();
    auto opened = OpenedStore::Open(path(), {});
    REQUIRE(opened.ok());
    store_ = std::move(opened).value();
  }
  void Close() { store_.reset(); }
  Result<std::string> Ask(const Request& request) {
    StoreService service(*store_, hooks());
    return service.Handle(request, {1000, 1000, 1}, sink);
  }
  ServingHooks& hooks() { return mounted ? static_cast<ServingHooks&>(mounted_) : unserved_; }
  std::string path() const { return scratch_ / "store"; }
  std::string scratch(const std::string& name) const { return scratch_ / name; }
  OpenedStore& store() { return *store_; }

  Collector sink;
  bool mounted = false;

 private:
  const test::Scratch scratch_;
  ServingHooks unserved_;
  MountedHooks mounted_;
  std::unique_ptr<OpenedStore> store_;
};

Request Of(Operation operation, std::optional<std::string> agent = std::nullopt) {
  Request request;
  request.operation = operation;
  request.agent = std::move(agent);
  return request;
}

void SaveText(OpenedStore& store, const std::string& name, const std::string& text) {
  volume::Volume& volume = store.volume();
  const StreamId stream = volume.FindAgent("planner")->stream;
  const auto found = volume.Lookup(stream, kRootInode, name);
  InodeId ino;
  if (found.ok()) {
    ino = found->ino;
  } else {
    const auto made = volume.Create(stream, kRootInode, name, {S_IFREG | 0600, 1, 1, 0}, {});
    REQUIRE(made.ok());
    ino = made->id;
  }
  const auto inode = volume.GetInode(stream, ino);
  REQUIRE(inode.ok());
  const ContentId content{Sha256::Of(text), text.size(), ContentKind::kFlat};
  const volume::NewObject object{content.digest, std::make_shared<const Bytes>(text), std::nullopt,
                                 0};
  REQUIRE(volume.CommitContent(stream, ino, content, {&object, 1}, inode->attributes, {}).ok());
}

}  // namespace

TEST_CASE("paths are within an agent's memory, however they are written") {
  CHECK(PathWithinMemory("notes.md") == "notes.md");
  CHECK(PathWithinMemory("/memory/notes.md") == "notes.md");
  CHECK(PathWithinMemory("memory/a/b/") == "a/b");
  CHECK(PathWithinMemory("memory.md") == "memory.md");
  CHECK(PathWithinMemory("") == "");
}

TEST_CASE("agents are added once, listed, removed and brought back") {
  Fixture fixture;
  CHECK(fixture.Ask(Of(Operation::kAgentAdd, "planner")).code() == Code::kExists);
  CHECK(fixture.Ask(Of(Operation::kAgentAdd, "../x")).code() == Code::kInvalidArgument);
  CHECK(fixture.Ask(Of(Operation::kAgentAdd)).code() == Code::kInvalidArgument);
  REQUIRE(fixture.Ask(Of(Operation::kAgentRemove, "coder")).ok());
  CHECK(fixture.Ask(Of(Operation::kAgentRemove, "coder")).code() == Code::kNotFound);
  const Json listed = Json::parse(fixture.Ask(Of(Operation::kAgentList)).value());
  REQUIRE(listed.at("agents").size() == 2);
  CHECK(listed.at("agents")[0].at("removed") == true);
  CHECK(fixture.Ask(Of(Operation::kAgentAdd, "coder")).ok());
}

TEST_CASE("a mounted agent is not removed") {
  Fixture fixture;
  fixture.mounted = true;
  const auto answer = fixture.Ask(Of(Operation::kAgentRemove, "planner"));
  CHECK(answer.code() == Code::kBusy);
  CHECK(answer.status().message().find("/mnt/planner") != std::string::npos);
  CHECK(fixture.Ask(Of(Operation::kAgentRemove, "coder")).ok());
}

TEST_CASE("cat gives any kept version, log the records of a path") {
  Fixture fixture;
  SaveText(fixture.store(), "a.md", "one");
  SaveText(fixture.store(), "b.md", "other");
  SaveText(fixture.store(), "a.md", "two");
  Request request = Of(Operation::kCat, "planner");
  request.path = "memory/a.md";
  const Json newest = Json::parse(fixture.Ask(request).value());
  CHECK(fixture.sink.data == "two");
  CHECK(newest.at("digest") == Sha256::Of("two").ToHex());

  request = Of(Operation::kLog, "planner");
  request.path = "a.md";
  REQUIRE(fixture.Ask(request).ok());
  REQUIRE(fixture.sink.items.size() == 2);
  const auto first =
      chain::ParseRecord(Json::parse(fixture.sink.items[0]).at("line").get<std::string>());
  REQUIRE(first.ok());
  CHECK(first->change.path == "a.md");

  request = Of(Operation::kCat, "planner");
  request.path = "a.md";
  request.seq = first->seq.value;
  fixture.sink.data.clear();
  REQUIRE(fixture.Ask(request).ok());
  CHECK(fixture.sink.data == "one");
  request.path = "missing.md";
  CHECK(fixture.Ask(request).code() == Code::kNotFound);
}

TEST_CASE("log keeps to its limit, the newest last, over all agents") {
  Fixture fixture;
  for (const char* text : {"1", "2", "3"}) SaveText(fixture.store(), "a.md", text);
  Request request = Of(Operation::kLog);
  request.limit = 2;
  REQUIRE(fixture.Ask(request).ok());
  REQUIRE(fixture.sink.items.size() == 2);
  CHECK(fixture.sink.items[1].find(Sha256::Of("3").ToHex()) != std::string::npos);
}

TEST_CASE("verify tells intact from broken and knows agents by name") {
  Fixture fixture;
  SaveText(fixture.store(), "a.md", "text");
  CHECK(Json::parse(fixture.Ask(Of(Operation::kVerify)).value()).at("verdict") == "intact");
  CHECK(fixture.Ask(Of(Operation::kVerify, "nobody")).code() == Code::kNotFound);
}

TEST_CASE("verify ends early when its client goes away, or the daemon is to end") {
  Fixture fixture;
  SaveText(fixture.store(), "a.md", "text");
  SECTION("the client") {
    fixture.sink.gone = true;
    CHECK(fixture.Ask(Of(Operation::kVerify)).code() == Code::kInterrupted);
  }
  SECTION("the daemon") {
    EndingHooks hooks;
    StoreService service(fixture.store(), hooks);
    const auto verified = service.Handle(Of(Operation::kVerify), {1000, 1000, 1}, fixture.sink);
    CHECK(verified.code() == Code::kInterrupted);
  }
}

TEST_CASE("what one agent may see holds no other's name") {
  Fixture fixture;
  fixture.mounted = true;
  const std::string all = fixture.Ask(Of(Operation::kStatus)).value();
  CHECK(all.find("planner") != std::string::npos);
  CHECK(all.find("coder") != std::string::npos);
  CHECK(Json::parse(all).at("pid").is_number());
  const std::string own = fixture.Ask(Of(Operation::kStatus, "coder")).value();
  CHECK(own.find("planner") == std::string::npos);
  CHECK(Json::parse(own).at("mounts").empty());
}

TEST_CASE("a store put back to an older state opens read-only and says why") {
  Fixture fixture;
  fixture.Close();
  const auto copy = std::filesystem::copy_options::recursive;
  std::filesystem::copy(fixture.path(), fixture.scratch("backup"), copy);
  fixture.Open();
  SaveText(fixture.store(), "a.md", "text");
  fixture.Close();
  std::filesystem::remove_all(fixture.path());
  std::filesystem::rename(fixture.scratch("backup"), fixture.path());

  fixture.Open();
  CHECK(fixture.store().read_only());
  CHECK(fixture.store().rollback().size() == 1);
  const Json status = Json::parse(fixture.Ask(Of(Operation::kStatus)).value());
  CHECK(status.at("read_only") == true);
  CHECK(status.at("read_only_reason").get<std::string>().find("heads.json") != std::string::npos);
  const Json report = Json::parse(fixture.Ask(Of(Operation::kVerify)).value());
  CHECK(report.at("verdict") == "broken");
  CHECK_FALSE(report.contains("problems"));  // as items, of which there may be any number
  REQUIRE(fixture.sink.items.size() == 1);
  CHECK(Json::parse(fixture.sink.items[0]).at("where") == "chain of agent planner");
  CHECK(fixture.Ask(Of(Operation::kAgentAdd, "third")).code() == Code::kReadOnly);

  const std::string own = fixture.Ask(Of(Operation::kStatus, "coder")).value();
  CHECK(own.find("planner") == std::string::npos);
  CHECK(Json::parse(own).at("read_only") == true);
  const std::string verified = fixture.Ask(Of(Operation::kVerify, "coder")).value();
  CHECK(verified.find("planner") == std::string::npos);
  CHECK(Json::parse(verified).at("verdict") == "intact");

  CHECK(std::filesystem::exists(fixture.store().state_directory() + "/rollback.ndjson"));
  Request purge = Of(Operation::kAgentRemove, "planner");
  purge.purge = true;
  CHECK(fixture.Ask(purge).code() == Code::kReadOnly);
  fixture.Open();
  CHECK(fixture.store().volume().FindAgent("planner").ok());
}

TEST_CASE("a purged agent is gone at once, and the store is no rollback afterwards") {
  Fixture fixture;
  SaveText(fixture.store(), "a.md", "text");
  Request purge = Of(Operation::kAgentRemove, "planner");
  purge.purge = true;
  REQUIRE(fixture.Ask(purge).ok());
  CHECK(Json::parse(fixture.Ask(Of(Operation::kAgentList)).value()).at("agents").size() == 1);
  CHECK(fixture.Ask(Of(Operation::kAgentAdd, "planner")).ok());
  fixture.Open();
  CHECK(fixture.store().rollback().empty());
  CHECK_FALSE(fixture.store().read_only());
  CHECK(Json::parse(fixture.Ask(Of(Operation::kVerify)).value()).at("verdict") == "intact");
}

TEST_CASE("what only a daemon does is refused") {
  Fixture fixture;
  CHECK(fixture.Ask(Of(Operation::kMount)).code() == Code::kNotSupported);
}

TEST_CASE("a store that is not there says how to make one") {
  const test::Scratch scratch;
  const auto opened = OpenedStore::Open(scratch / "nothing", {});
  CHECK(opened.code() == Code::kNotFound);
  CHECK(opened.status().message().find("memoirfs init") != std::string::npos);
}

}  // namespace memoirfs::daemon
