// Heads kept outside the store: what they find out and what they let pass.

#include "fs/daemon/anchors.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "store/base/clock.h"
#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {
namespace {

using test::Scratch;

// A store with one agent, opened anew for each step.
class Store {
 public:
  explicit Store(std::string path) : path_(std::move(path)) {}

  void With(const std::function<void(volume::Volume&)>& step) const {
    const auto io = OpenRealIo(path_);
    REQUIRE(io.ok());
    volume::VolumeOptions options;
    options.background = false;
    const auto volume = volume::Volume::Open(**io, Clock::Real(), options);
    REQUIRE(volume.ok());
    step(**volume);
  }
  void Init() const {
    REQUIRE(volume::InitStore(path_).ok());
    With([](volume::Volume& volume) { REQUIRE(volume.AddAgent("planner", 1, 1).ok()); });
  }
  void MakeDirectory(const std::string& name) const {
    With([&](volume::Volume& volume) {
      const StreamId stream = volume.FindAgent("planner")->stream;
      REQUIRE(volume.MakeDirectory(stream, kRootInode, name, {S_IFDIR | 0700, 1, 1, 0}, {}).ok());
    });
  }

 private:
  const std::string path_;
};

size_t ProblemsOf(const Scratch& state, const Store& store) {
  size_t count = 0;
  store.With([&](volume::Volume& volume) {
    const auto anchors = Anchors::Load(state.path());
    REQUIRE(anchors.ok());
    const auto problems = anchors->Check(volume);
    REQUIRE(problems.ok());
    count = problems->size();
  });
  return count;
}

void NoteHeads(const Scratch& state, const Store& store) {
  store.With([&](volume::Volume& volume) {
    auto anchors = Anchors::Load(state.path());
    REQUIRE(anchors.ok());
    REQUIRE(anchors->Update(volume).ok());
  });
}

}  // namespace

TEST_CASE("a chain that went on from its anchor is fine; one behind it is a rollback") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  std::filesystem::copy(root / "store", root / "old", std::filesystem::copy_options::recursive);
  CHECK(ProblemsOf(state, store) == 0);
  store.MakeDirectory("a");
  NoteHeads(state, store);
  CHECK(ProblemsOf(state, store) == 0);
  store.MakeDirectory("b");
  CHECK(ProblemsOf(state, store) == 0);

  CHECK(ProblemsOf(state, Store(root / "old")) == 1);
}

TEST_CASE("another record in an anchor's place is found out, also below a longer chain") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  std::filesystem::copy(root / "store", root / "other", std::filesystem::copy_options::recursive);
  store.MakeDirectory("a");
  NoteHeads(state, store);
  const Store other(root / "other");
  other.MakeDirectory("x");
  CHECK(ProblemsOf(state, other) == 1);
  other.MakeDirectory("y");
  other.MakeDirectory("z");
  CHECK(ProblemsOf(state, other) == 1);
}

TEST_CASE("a chain that is gone is found out") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  NoteHeads(state, store);
  REQUIRE(volume::InitStore(root / "empty").ok());
  CHECK(ProblemsOf(state, Store(root / "empty")) == 1);
}

namespace {

size_t ProblemsOnDisk(const Scratch& state, const std::string& path) {
  const auto io = OpenRealIo(path);
  REQUIRE(io.ok());
  const auto problems = Anchors::Load(state.path())->CheckOnDisk(**io);
  INFO(problems.status().ToString());
  REQUIRE(problems.ok());
  return problems->size();
}

void NotePurge(const Scratch& state) {
  auto anchors = Anchors::Load(state.path());
  REQUIRE(anchors.ok());
  REQUIRE(anchors->NotePurge(anchors->known().begin()->first).ok());
}

// Names and bytes of all files.
std::map<std::string, std::string> FilesOf(const std::string& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    files[entry.path().string()] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

void Copy(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

}  // namespace

TEST_CASE("a store that is put back is found out before anything of it is changed") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  // Cut off without a clean stop: records are in the journal, and recovery would have much to do.
  store.With([&](volume::Volume& volume) {
    const StreamId stream = volume.FindAgent("planner")->stream;
    REQUIRE(volume.MakeDirectory(stream, kRootInode, "a", {S_IFDIR | 0700, 1, 1, 0}, {}).ok());
    REQUIRE(volume.Sync().ok());
    Copy(root / "store", root / "old");
    REQUIRE(volume.MakeDirectory(stream, kRootInode, "b", {S_IFDIR | 0700, 1, 1, 0}, {}).ok());
    REQUIRE(volume.Sync().ok());
    auto anchors = Anchors::Load(state.path());
    REQUIRE(anchors->Update(volume).ok());
    Copy(root / "store", root / "cut");
  });
  CHECK(ProblemsOnDisk(state, root / "store") == 0);
  const auto before = FilesOf(root / "old");
  CHECK(ProblemsOnDisk(state, root / "cut") == 0);
  CHECK(ProblemsOnDisk(state, root / "old") == 1);
  CHECK(FilesOf(root / "old") == before);
  // A recovery goes on from what it finds; the record in the anchor's place is another one then.
  Store(root / "old").MakeDirectory("c");
  CHECK(ProblemsOnDisk(state, root / "old") == 1);
}

TEST_CASE("a chain whose records are only in packs yet is no rollback") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  store.MakeDirectory("a");
  NoteHeads(state, store);
  // Rebuilding carries all journals into packs.
  std::ofstream(root / "store/REBUILD").flush();
  store.With([](volume::Volume&) {});
  for (const auto& entry : std::filesystem::directory_iterator(root / "store/chains")) {
    std::filesystem::remove_all(entry.path());
  }
  CHECK(ProblemsOnDisk(state, root / "store") == 0);
}

TEST_CASE("a purge that is cut short anywhere is no rollback") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  NoteHeads(state, store);

  NotePurge(state);  // noted, not begun
  CHECK(ProblemsOnDisk(state, root / "store") == 0);
  CHECK(ProblemsOf(state, store) == 0);

  store.With([](volume::Volume& volume) {  // decided
    REQUIRE(volume.RemoveAgent("planner", true).ok());
  });
  CHECK(ProblemsOnDisk(state, root / "store") == 0);
  for (const auto& entry : std::filesystem::directory_iterator(root / "store/chains")) {
    std::filesystem::remove_all(entry.path());  // begun
  }
  CHECK(ProblemsOnDisk(state, root / "store") == 0);

  CHECK(ProblemsOf(state, store) == 0);  // carried out, not forgotten
  CHECK(ProblemsOnDisk(state, root / "store") == 0);
  NoteHeads(state, store);
  CHECK(Anchors::Load(state.path())->known().empty());
}

TEST_CASE("a purge that was noted and not begun hides no rollback") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  Copy(root / "store", root / "old");
  store.MakeDirectory("a");
  NoteHeads(state, store);
  NotePurge(state);
  CHECK(ProblemsOnDisk(state, root / "old") == 1);
  CHECK(ProblemsOf(state, Store(root / "old")) == 1);
  // The agent stays: the next note of the heads is an ordinary one.
  NoteHeads(state, store);
  CHECK_FALSE(Anchors::Load(state.path())->known().begin()->second.purging);
}

TEST_CASE("a chain that is purged without a note outside is found out") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  NoteHeads(state, store);
  store.With([](volume::Volume& volume) { REQUIRE(volume.RemoveAgent("planner", true).ok()); });
  CHECK(ProblemsOf(state, store) == 1);
  CHECK(ProblemsOnDisk(state, root / "store") == 1);
}

TEST_CASE("what a check found is kept once, and added to by another finding") {
  const Scratch state;
  const auto anchors = Anchors::Load(state.path());
  REQUIRE(anchors.ok());
  const auto lines = [&] {
    std::ifstream in(state / "rollback.ndjson");
    const std::string text(std::istreambuf_iterator<char>(in), {});
    return std::count(text.begin(), text.end(), '\n');
  };
  REQUIRE(anchors->KeepFindings({{"anchor", "chain of agent a", "x", "y"}}, 1).ok());
  REQUIRE(anchors->KeepFindings({{"anchor", "chain of agent a", "x", "y"}}, 2).ok());
  CHECK(lines() == 1);
  REQUIRE(anchors->KeepFindings({{"anchor", "chain of agent a", "x", "z"}}, 3).ok());
  CHECK(lines() == 2);
}

TEST_CASE("anchors are kept for the owner alone and survive their text") {
  const Scratch state;
  const Scratch root;
  const Store store(root / "store");
  store.Init();
  NoteHeads(state, store);
  const auto anchors = Anchors::Load(state.path());
  REQUIRE(anchors.ok());
  REQUIRE(anchors->known().size() == 1);
  CHECK(anchors->known().begin()->second.agent == "planner");
  CHECK(DecodeAnchors(EncodeAnchors(anchors->known())).value() == anchors->known());
  struct stat st {};
  REQUIRE(::stat(anchors->path().c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0600);
}

TEST_CASE("a damaged file of anchors is an error that says what to do") {
  const Scratch state;
  for (const char* text :
       {"", "{", "[]", "{\"heads\":7}", "{\"heads\":[7]}",
        "{\"heads\":[{\"stream\":-1,\"agent\":\"a\",\"seq\":1,\"hash\":\"\"}]}",
        "{\"heads\":[{\"stream\":1,\"agent\":\"a\",\"seq\":1,\"hash\":\"ab\"}]}"}) {
    INFO(text);
    std::ofstream(state / "heads.json") << text;
    const auto anchors = Anchors::Load(state.path());
    CHECK(anchors.code() == Code::kCorrupt);
    CHECK(anchors.status().ToString().find("Move the file away") != std::string::npos);
  }
}

}  // namespace memoirfs::daemon
