#include "tests/support/sim_io.h"

#include <catch2/catch.hpp>
#include <set>
#include <thread>

namespace memoirfs::testing {
namespace {

constexpr uint64_t kSeeds = 64;

std::unique_ptr<File> MustOpen(SimIo& io, const std::string& path, OpenMode mode) {
  Result<std::unique_ptr<File>> file = io.Open(path, mode);
  REQUIRE(file.status().ToString() == "ok");
  return std::move(file).value();
}

void WriteDurably(SimIo& io, const std::string& path, ByteView data) {
  const std::unique_ptr<File> file = MustOpen(io, path, OpenMode::kOpenOrCreate);
  REQUIRE(file->WriteAt(0, data).ok());
  REQUIRE(file->Sync().ok());
  REQUIRE(io.SyncDirectory(ParentOf(path)).ok());
}

bool Exists(SimIo& io, const std::string& path) { return io.Stat(path).ok(); }

Bytes Content(SimIo& io, const std::string& path) {
  Result<Bytes> bytes = ReadWholeFile(io, path);
  return bytes.ok() ? std::move(bytes).value() : "(" + bytes.status().ToString() + ")";
}

// What power cuts with many seeds leave of a file.
std::set<Bytes> Outcomes(const SimIo& io, const std::string& path) {
  std::set<Bytes> outcomes;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::unique_ptr<SimIo> left = io.AfterPowerCut(seed);
    outcomes.insert(Exists(*left, path) ? Content(*left, path) : "(none)");
  }
  return outcomes;
}

}  // namespace

TEST_CASE("what was synced with its name survives every power cut") {
  SimIo io;
  REQUIRE(io.MakeDirectory("d").ok());
  REQUIRE(io.SyncDirectory(".").ok());
  WriteDurably(io, "d/f", "kept");
  CHECK(Outcomes(io, "d/f") == std::set<Bytes>{"kept"});
}

TEST_CASE("a file's own sync does not make its name durable") {
  SimIo io;
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kCreate);
  REQUIRE(file->WriteAt(0, "x").ok());
  REQUIRE(file->Sync().ok());
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"(none)", "x"});
}

TEST_CASE("an unsynced write is kept, lost or torn at sectors, and nothing else") {
  SimIo io;
  WriteDurably(io, "f", Bytes(1024, 'a'));
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kReadWrite);
  REQUIRE(file->WriteAt(0, Bytes(1024, 'b')).ok());
  const Bytes a(512, 'a');
  const Bytes b(512, 'b');
  CHECK(Outcomes(io, "f") == std::set<Bytes>{a + a, a + b, b + a, b + b});
}

TEST_CASE("a sector that missed a write misses the later ones too") {
  SimIo io;
  WriteDurably(io, "f", "00");
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kReadWrite);
  REQUIRE(file->WriteAt(0, "1").ok());
  REQUIRE(file->WriteAt(1, "2").ok());
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"00", "10", "12"});
}

TEST_CASE("a file may have grown without the bytes that it grew for") {
  SimIo io;
  WriteDurably(io, "f", "");
  REQUIRE(MustOpen(io, "f", OpenMode::kReadWrite)->WriteAt(0, "xy").ok());
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"", Bytes(2, '\0'), "xy"});
}

TEST_CASE("truncations are kept in order") {
  SimIo io;
  WriteDurably(io, "f", "long");
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kReadWrite);
  REQUIRE(file->Truncate(2).ok());
  REQUIRE(file->Truncate(1).ok());
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"long", "lo", "l"});
  REQUIRE(file->DataSync().ok());
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"l"});
}

TEST_CASE("a rename that was not synced leaves the old or the new name of it") {
  SimIo io;
  WriteDurably(io, "old", "x");
  WriteDurably(io, "target", "y");
  REQUIRE(io.Rename("old", "target").ok());
  std::set<Bytes> outcomes;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::unique_ptr<SimIo> left = io.AfterPowerCut(seed);
    outcomes.insert(Content(*left, "target") + (Exists(*left, "old") ? "+old" : ""));
  }
  CHECK(outcomes == std::set<Bytes>{"y+old", "x"});
}

TEST_CASE("a rename between directories is durable only where it was synced") {
  SimIo io;
  REQUIRE(io.MakeDirectory("a").ok());
  REQUIRE(io.MakeDirectory("b").ok());
  REQUIRE(io.SyncDirectory(".").ok());
  WriteDurably(io, "a/f", "x");
  REQUIRE(io.Rename("a/f", "b/f").ok());

  SECTION("the new directory alone: the file may have both names") {
    REQUIRE(io.SyncDirectory("b").ok());
    CHECK(Outcomes(io, "b/f") == std::set<Bytes>{"x"});
    CHECK(Outcomes(io, "a/f") == std::set<Bytes>{"(none)", "x"});
  }
  SECTION("the old directory alone: the file may be lost") {
    REQUIRE(io.SyncDirectory("a").ok());
    CHECK(Outcomes(io, "a/f") == std::set<Bytes>{"(none)"});
    CHECK(Outcomes(io, "b/f") == std::set<Bytes>{"(none)", "x"});
  }
}

TEST_CASE("names change in the order in which they were changed") {
  SimIo io;
  REQUIRE(io.Open("1", OpenMode::kCreate).ok());
  REQUIRE(io.Open("2", OpenMode::kCreate).ok());
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    INFO("seed " << seed);
    const std::unique_ptr<SimIo> left = io.AfterPowerCut(seed);
    CHECK((Exists(*left, "1") || !Exists(*left, "2")));
  }
}

TEST_CASE("a removal that was not synced may come back") {
  SimIo io;
  WriteDurably(io, "f", "x");
  REQUIRE(io.Remove("f").ok());
  CHECK_FALSE(Exists(io, "f"));
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"(none)", "x"});
}

TEST_CASE("a seed always gives the same outcome") {
  const auto outcome = [](uint64_t seed) {
    SimIo io;
    WriteDurably(io, "f", "");
    WriteDurably(io, "g", "");
    REQUIRE(MustOpen(io, "f", OpenMode::kReadWrite)->WriteAt(0, Bytes(8192, 'x')).ok());
    REQUIRE(MustOpen(io, "g", OpenMode::kReadWrite)->WriteAt(0, Bytes(8192, 'y')).ok());
    const std::unique_ptr<SimIo> left = io.AfterPowerCut(seed);
    return Content(*left, "f") + "|" + Content(*left, "g");
  };
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CHECK(outcome(seed) == outcome(seed));
}

TEST_CASE("a kill keeps what was written, still unsynced") {
  SimIo io;
  WriteDurably(io, "f", "a");
  REQUIRE(MustOpen(io, "f", OpenMode::kReadWrite)->WriteAt(0, "b").ok());
  const std::unique_ptr<SimIo> killed = io.AfterKill();
  CHECK(Content(*killed, "f") == "b");
  CHECK(Outcomes(*killed, "f") == std::set<Bytes>{"a", "b"});
  REQUIRE(MustOpen(*killed, "f", OpenMode::kReadWrite)->Sync().ok());
  CHECK(Outcomes(*killed, "f") == std::set<Bytes>{"b"});
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"a", "b"});
}

TEST_CASE("a failed sync loses its changes for good, while they stay readable") {
  SimIo io;
  WriteDurably(io, "f", "a");
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kReadWrite);
  REQUIRE(file->WriteAt(0, "b").ok());
  io.FailAt(1, EIO, SimCall::kDataSync);
  CHECK(file->DataSync().code() == Code::kIo);
  CHECK(file->DataSync().ok());
  CHECK(Content(io, "f") == "b");
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"a"});
}

TEST_CASE("failures hit the call that they were set for, once or for ever") {
  SimIo io;
  WriteDurably(io, "f", "a");
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kReadWrite);
  SECTION("once") {
    io.FailAt(2, ENOSPC, SimCall::kWrite);
    CHECK(file->WriteAt(0, "1").ok());
    CHECK(file->WriteAt(0, "2").ToErrno() == ENOSPC);
    CHECK(file->WriteAt(1, "3").ok());
    CHECK(Content(io, "f") == "13");
  }
  SECTION("for ever, until the faults are cleared") {
    io.FailAt(1, EIO, SimCall::kAny, SimFault::kForever);
    CHECK_FALSE(file->WriteAt(0, "1").ok());
    CHECK_FALSE(io.List(".").ok());
    io.ClearFaults();
    CHECK(io.List(".").ok());
  }
  SECTION("a short write leaves its first half") {
    io.ShortWriteAt(1);
    CHECK_FALSE(file->WriteAt(0, "1234").ok());
    CHECK(Content(io, "f") == "12");
  }
}

TEST_CASE("after a crash every call fails and nothing changes any more") {
  SimIo io;
  WriteDurably(io, "f", "a");
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kReadWrite);
  io.CrashAt(2);
  REQUIRE(file->WriteAt(0, "b").ok());
  CHECK(file->ReadAt(0, 1).ok());  // not a change
  CHECK_FALSE(file->Sync().ok());
  CHECK(io.crashed());
  CHECK_FALSE(file->WriteAt(0, "c").ok());
  CHECK_FALSE(file->ReadAt(0, 1).ok());
  CHECK_FALSE(io.Stat("f").ok());
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"a", "b"});
}

TEST_CASE("calls are counted by kind") {
  SimIo io;
  WriteDurably(io, "f", "a");
  REQUIRE(io.Stat("f").ok());
  CHECK(io.calls(SimCall::kCreate) == 1);
  CHECK(io.Open("f", OpenMode::kRead).ok());
  CHECK(io.calls(SimCall::kOpen) == 1);
  CHECK(io.calls(SimCall::kWrite) == 1);
  CHECK(io.calls(SimCall::kSync) == 1);
  CHECK(io.calls(SimCall::kSyncDirectory) == 1);
  CHECK(io.calls(SimCall::kChange) == 4);
  CHECK(io.calls() == 6);
}

TEST_CASE("a full disk refuses to grow files and says how much is free") {
  SimIo io;
  io.SetCapacity(1024);
  const std::unique_ptr<File> file = MustOpen(io, "f", OpenMode::kCreate);
  CHECK(file->WriteAt(0, Bytes(512, 'x')).ok());
  CHECK(io.Space()->available_blocks * io.Space()->block_size == 512);
  CHECK(file->WriteAt(512, Bytes(513, 'x')).code() == Code::kNoSpace);
  CHECK(file->WriteAt(0, Bytes(512, 'y')).ok());
  REQUIRE(io.Remove("f").ok());
  CHECK(MustOpen(io, "g", OpenMode::kCreate)->WriteAt(0, Bytes(1024, 'x')).ok());
}

TEST_CASE("calls answer like the system's") {
  SimIo io;
  REQUIRE(io.MakeDirectory("d").ok());
  WriteDurably(io, "d/f", "x");
  CHECK(io.Open("d/none", OpenMode::kRead).code() == Code::kNotFound);
  CHECK(io.Open("none/f", OpenMode::kCreate).code() == Code::kNotFound);
  CHECK(io.Open("d/f", OpenMode::kCreate).code() == Code::kExists);
  CHECK(io.Open("d", OpenMode::kRead).code() == Code::kIsDirectory);
  CHECK(io.MakeDirectory("d").code() == Code::kExists);
  CHECK(io.RemoveDirectory("d").code() == Code::kNotEmpty);
  CHECK(io.Remove("d").code() == Code::kIsDirectory);
  CHECK(io.Rename("d/none", "d/g").code() == Code::kNotFound);
  CHECK(io.List(".").value() == std::vector<std::string>{"d"});
  CHECK(io.Stat("d")->is_directory);
  CHECK(io.Stat("d/f")->size == 1);
  CHECK_FALSE(MustOpen(io, "d/f", OpenMode::kRead)->WriteAt(0, "y").ok());
}

TEST_CASE("damage hits the disk and the page cache, within the file only") {
  SimIo io;
  WriteDurably(io, "f", "abc");
  CHECK(io.Overwrite("f", 1, "X"));
  CHECK_FALSE(io.Overwrite("f", 3, "X"));
  CHECK_FALSE(io.Overwrite("none", 0, "X"));
  CHECK(Outcomes(io, "f") == std::set<Bytes>{"aXc"});
  CHECK(Content(io, "f") == "aXc");
}

TEST_CASE("threads may use it together") {
  SimIo io;
  const auto work = [&io](int thread) {
    const std::string path = "f" + std::to_string(thread);
    for (int i = 0; i < 50; ++i) (void)WriteFileAtomically(io, path, std::to_string(i));
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) CHECK(Outcomes(io, "f" + std::to_string(t)) == std::set<Bytes>{"49"});
}

}  // namespace memoirfs::testing
