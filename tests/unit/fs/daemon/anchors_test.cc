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
