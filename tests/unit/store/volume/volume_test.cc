#include "store/volume/volume.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "store/cas/chunk_tree.h"
#include "store/volume/store_lock.h"
#include "store/volume/verify.h"

namespace fs = std::filesystem;
using namespace memoirfs;          // NOLINT: a test
using namespace memoirfs::volume;  // NOLINT: a test

namespace {

// A store in a directory of its own, opened and closed as a test needs it.
class TestStore {
 public:
  TestStore() {
    std::string name = (fs::temp_directory_path() / "memoirfs-volume-XXXXXX").string();
    root_ = mkdtemp(name.data());
    io_ = OpenRealIo(root_).value();
    options_.journal.file_size = 1 << 20;
    options_.journal.reserve = 128 << 10;
    options_.background = false;
    INFO(root_);
    REQUIRE(InitStore(*io_, options_).ok());
    Open();
  }
  ~TestStore() {
    volume_.reset();
    fs::remove_all(root_);
  }

  void Open() {
    auto volume = Volume::Open(*io_, Clock::Real(), options_);
    INFO(volume.status().ToString());
    REQUIRE(volume.ok());
    volume_ = std::move(*volume);
  }
  void Reopen() {
    volume_.reset();
    Open();
  }

  Volume& operator*() { return *volume_; }
  Volume* operator->() { return volume_.get(); }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
  std::unique_ptr<FileIo> io_;
  VolumeOptions options_;
  std::unique_ptr<Volume> volume_;
};

const chain::Actor kActor{1000, 1000, 42, "test"};
const NewNode kFile{S_IFREG | 0644, 1000, 1000, 0};
const NewNode kDirectory{S_IFDIR | 0755, 1000, 1000, 0};

StreamId AddAgent(TestStore& store, const std::string& name = "ada") {
  const auto agent = store->AddAgent(name, 1000, 1000);
  INFO(agent.status().ToString());
  REQUIRE(agent.ok());
  return agent->stream;
}

InodeId PutFile(TestStore& store, StreamId stream, InodeId parent, const std::string& name,
                const std::string& text) {
  const auto entry = store->Lookup(stream, parent, name);
  const auto inode = entry.ok() ? store->GetInode(stream, entry->ino)
                                : store->Create(stream, parent, name, kFile, kActor);
  INFO(inode.status().ToString());
  REQUIRE(inode.ok());
  const Digest digest = Sha256::Of(text);
  const NewObject object{digest, std::make_shared<const Bytes>(text), {}, 0};
  const auto done = store->CommitContent(stream, inode->id, ContentId{digest, text.size(), {}},
                                         {&object, 1}, inode->attributes, kActor);
  INFO(done.status().ToString());
  REQUIRE(done.ok());
  return inode->id;
}

std::string ReadFile(TestStore& store, StreamId stream, InodeId parent, const std::string& name) {
  const auto entry = store->Lookup(stream, parent, name);
  if (!entry.ok()) return "<" + entry.status().ToString() + ">";
  const auto inode = store->GetInode(stream, entry->ino);
  const auto bytes = cas::ReadContent(store->objects(), inode->content, 0, inode->content.size);
  return bytes.ok() ? *bytes : "<" + bytes.status().ToString() + ">";
}

std::string Letters(int i) { return std::string(100'000, static_cast<char>('a' + i % 26)); }

void CheckVerifies(TestStore& store) {
  const auto report = VerifyVolume(*store, {}, {});
  INFO(report.status().ToString());
  REQUIRE(report.ok());
  for (const VerifyProblem& problem : report->problems) {
    UNSCOPED_INFO(problem.what << " " << problem.where << ": expected " << problem.expected
                               << ", found " << problem.found);
  }
  CHECK(report->problems.empty());
}

}  // namespace

TEST_CASE("what was committed is there after closing and opening again") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  PutFile(store, ada, kRootInode, "MEMORY.md", "first");
  PutFile(store, ada, kRootInode, "MEMORY.md", "second");
  store.Reopen();
  CHECK(ReadFile(store, ada, kRootInode, "MEMORY.md") == "second");
  CHECK(store->FindAgent("ada")->stream == ada);
  CheckVerifies(store);
}

TEST_CASE("what an interrupted init left is completed under the store's lock only") {
  std::string root = (fs::temp_directory_path() / "memoirfs-init-XXXXXX").string();
  REQUIRE(mkdtemp(root.data()) != nullptr);
  fs::create_directory(root + "/journal");
  {
    const auto lock = StoreLock::Acquire(root, "");
    REQUIRE(lock.ok());
    CHECK(InitStore(root).code() == Code::kLocked);
    CHECK_FALSE(fs::exists(root + "/FORMAT"));
  }
  CHECK(InitStore(root).ok());
  CHECK(InitStore(root).code() == Code::kExists);
  fs::remove_all(root);
}

TEST_CASE("a directory that changes while a file in it is not committed yet verifies") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  const auto directory = store->MakeDirectory(ada, kRootInode, "d", kDirectory, kActor);
  REQUIRE(directory.ok());
  REQUIRE(store->Create(ada, directory->id, "new", kFile, kActor).ok());
  REQUIRE(store->Rename(ada, kRootInode, "d", kRootInode, "e", RenameMode::kReplace, kActor).ok());
  CheckVerifies(store);
}

TEST_CASE("every kept version of a path can be read") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  PutFile(store, ada, kRootInode, "a", "one");
  const Seq one = store->FindAgent("ada")->head.seq;
  PutFile(store, ada, kRootInode, "a", "two");
  REQUIRE(store->Unlink(ada, kRootInode, "a", kActor).ok());
  const auto version = store->FindVersion(ada, "a", one);
  REQUIRE(version.ok());
  CHECK(version->content.digest == Sha256::Of("one"));
  CHECK(store->FindVersion(ada, "a", std::nullopt).code() == Code::kNotFound);
}

TEST_CASE("a created file that is removed before it is committed leaves no record") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  PutFile(store, ada, kRootInode, "kept", "x");
  const Seq before = store->FindAgent("ada")->head.seq;
  REQUIRE(store->Create(ada, kRootInode, "gone", kFile, kActor).ok());
  CHECK(store->Lookup(ada, kRootInode, "gone").ok());
  REQUIRE(store->Unlink(ada, kRootInode, "gone", kActor).ok());
  CHECK(store->Lookup(ada, kRootInode, "gone").code() == Code::kNotFound);
  CHECK(store->FindAgent("ada")->head.seq == before);
  store.Reopen();
  CHECK(store->Lookup(ada, kRootInode, "gone").code() == Code::kNotFound);
  CheckVerifies(store);
}

TEST_CASE("a created file that was not committed is empty after the next opening") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  REQUIRE(store->Create(ada, kRootInode, "empty", kFile, kActor).ok());
  store.Reopen();
  CHECK(ReadFile(store, ada, kRootInode, "empty").empty());
  CheckVerifies(store);
}

TEST_CASE("names are changed as rename(2) says") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  PutFile(store, ada, kRootInode, "a", "A");
  PutFile(store, ada, kRootInode, "b", "B");
  const InodeId dir = store->MakeDirectory(ada, kRootInode, "d", kDirectory, kActor)->id;
  const InodeId inner = store->MakeDirectory(ada, dir, "e", kDirectory, kActor)->id;
  const auto rename = [&](InodeId from, const std::string& name, InodeId to,
                          const std::string& new_name, RenameMode mode = RenameMode::kReplace) {
    return store->Rename(ada, from, name, to, new_name, mode, kActor).code();
  };
  CHECK(rename(kRootInode, "a", kRootInode, "b", RenameMode::kNoReplace) == Code::kExists);
  CHECK(rename(kRootInode, "a", kRootInode, "d") == Code::kIsDirectory);
  CHECK(rename(kRootInode, "d", kRootInode, "a") == Code::kNotDirectory);
  CHECK(rename(kRootInode, "d", inner, "x") == Code::kInvalidArgument);
  CHECK(rename(kRootInode, "a", kRootInode, "b", RenameMode::kExchange) == Code::kOk);
  CHECK(ReadFile(store, ada, kRootInode, "a") == "B");
  CHECK(rename(kRootInode, "a", kRootInode, "b") == Code::kOk);
  CHECK(ReadFile(store, ada, kRootInode, "b") == "B");
  CHECK(rename(kRootInode, "b", inner, "c") == Code::kOk);
  CHECK(ReadFile(store, ada, inner, "c") == "B");
  CHECK(store->RemoveDirectory(ada, kRootInode, "d", kActor).code() == Code::kNotEmpty);
  store.Reopen();
  CHECK(ReadFile(store, ada, inner, "c") == "B");
  CheckVerifies(store);
}

TEST_CASE("a damaged index is rebuilt from chains and packs") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  for (int i = 0; i < 300; ++i) {
    PutFile(store, ada, kRootInode, "f" + std::to_string(i % 40), "text " + std::to_string(i));
  }
  fs::remove_all(store.root() + "/index");
  store.Reopen();
  CHECK(ReadFile(store, ada, kRootInode, "f39") == "text 279");
  CheckVerifies(store);
}

TEST_CASE("full journals are sealed into packs and read on") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  for (int i = 0; i < 60; ++i) {
    PutFile(store, ada, kRootInode, "f" + std::to_string(i), Letters(i));
    if (i % 7 == 0) REQUIRE(store->RunCommitterOnce().ok());
  }
  REQUIRE(store->RunCommitterOnce().ok());
  CHECK(std::distance(fs::directory_iterator(store.root() + "/packs"), {}) >= 2);
  for (int i = 0; i < 60; ++i) {
    CHECK(ReadFile(store, ada, kRootInode, "f" + std::to_string(i)) == Letters(i));
  }
  store.Reopen();
  CHECK(ReadFile(store, ada, kRootInode, "f5") == std::string(100'000, 'f'));
  CheckVerifies(store);
}

TEST_CASE("a removed agent comes back with its history") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  PutFile(store, ada, kRootInode, "a", "A");
  REQUIRE(store->RemoveAgent("ada", false).ok());
  CHECK(store->FindAgent("ada").code() == Code::kNotFound);
  store.Reopen();
  CHECK(store->FindAgent("ada").code() == Code::kNotFound);
  CHECK(AddAgent(store) == ada);
  CHECK(ReadFile(store, ada, kRootInode, "a") == "A");
}

TEST_CASE("purging an agent erases its bytes and leaves those of others") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  const StreamId bob = AddAgent(store, "bob");
  PutFile(store, ada, kRootInode, "a", "only ada knows this sentence");
  PutFile(store, ada, kRootInode, "s", "shared text");
  PutFile(store, bob, kRootInode, "s", "shared text");
  const Status removed = store->RemoveAgent("ada", true);
  INFO(removed.ToString());
  REQUIRE(removed.ok());
  store.Reopen();
  for (const auto& entry : fs::recursive_directory_iterator(store.root())) {
    if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
    std::ifstream in(entry.path());
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    INFO(entry.path());
    CHECK(bytes.find("only ada knows") == std::string::npos);
  }
  store.Reopen();
  CHECK(store->FindAgent("ada").code() == Code::kNotFound);
  CHECK(ReadFile(store, bob, kRootInode, "s") == "shared text");
  CheckVerifies(store);
}

TEST_CASE("purging an agent keeps what another agent's objects extend") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  const StreamId bob = AddAgent(store, "bob");
  const std::string start(5000, 'x');
  const std::string whole = start + std::string(200, 'y');
  const InodeId ino = PutFile(store, ada, kRootInode, "f", start);
  const NewObject grown{Sha256::Of(whole), std::make_shared<const Bytes>(whole), Sha256::Of(start),
                        start.size()};
  const ContentId content{grown.digest, whole.size(), {}};
  const auto attributes = store->GetInode(ada, ino)->attributes;
  REQUIRE(store->CommitContent(ada, ino, content, {&grown, 1}, attributes, kActor).ok());
  PutFile(store, bob, kRootInode, "g", whole);
  REQUIRE(store->RemoveAgent("ada", true).ok());
  store.Reopen();
  CHECK(ReadFile(store, bob, kRootInode, "g") == whole);
  CheckVerifies(store);
}

TEST_CASE("a store opens with what a verification that was cut short left behind") {
  TestStore store;
  const StreamId ada = AddAgent(store);
  PutFile(store, ada, kRootInode, "a", "A");
  fs::create_directory(store.root() + "/staging/verify");
  std::ofstream(store.root() + "/staging/verify/000001.log") << "rest";
  store.Reopen();
  CHECK(ReadFile(store, ada, kRootInode, "a") == "A");
  CheckVerifies(store);
}
