// What the committer promises: when things become durable, what follows the journal only then, and
// that an idle store rests.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "store/chain/segment.h"
#include "store/meta/schema.h"
#include "store/volume/volume_impl.h"
#include "tests/unit/store/volume/sim_store.h"

namespace memoirfs::testing {
namespace {

constexpr uint64_t kNever = 3'600'000;  // milliseconds: longer than any test

volume::VolumeOptions WithCommitter(uint64_t interval_ms) {
  volume::VolumeOptions options = CrashOptions();
  options.background = true;
  options.commit_interval_ms = interval_ms;
  return options;
}

// Waits for another thread of the store; false when it never gets there.
bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

bool SurvivesEveryPowerCut(const SimIo& io, const std::string& path) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto after = io.AfterPowerCut(seed);
    LivingStore left(*after);
    if (!left.Open().ok() || left.ReadTree()->count(path) == 0) return false;
  }
  return true;
}

// How many records the chain file of stream has.
uint64_t LinesOf(SimIo& io, StreamId stream) {
  uint64_t lines = 0;
  REQUIRE(chain::ForEachLine(io, stream, [&](uint64_t, std::string_view) {
            ++lines;
            return Status();
          }).ok());
  return lines;
}

// What LevelDB holds of the name, apart from what lies above it in memory.
bool IndexHolds(const SimIo& io, StreamId stream, const std::string& name) {
  const auto copy = io.AfterKill();
  const auto index = meta::Index::Open(*copy, "index");
  REQUIRE(index.ok());
  return (*index)->Get(meta::DentryKey(stream, kRootInode, name))->has_value();
}

}  // namespace

TEST_CASE("an idle store does no input and output") {
  SimStore ada;
  ada.Save("ada/a", "text");
  REQUIRE(ada.store.Create("ada/uncommitted").ok());
  for (int i = 0; i < 2; ++i) REQUIRE(ada.store->RunCommitterOnce().ok());
  uint64_t calls = ada.io.calls();
  for (int i = 0; i < 5; ++i) REQUIRE(ada.store->RunCommitterOnce().ok());
  CHECK(ada.io.calls() == calls);

  // Neither a late reader's finding nor an orphan that an opening drops keeps it awake.
  const Digest digest = Sha256::Of("text");
  ada.store->impl().OnCorrupt(digest, {}, "a test says so");
  REQUIRE(ada.store->RunCommitterOnce().ok());
  REQUIRE(ada.store.Unlink("ada/a").ok());
  ada.Reopen();
  REQUIRE(ada.store->RunCommitterOnce().ok());
  calls = ada.io.calls();
  REQUIRE(ada.store->RunCommitterOnce().ok());
  CHECK(ada.io.calls() == calls);
}

TEST_CASE("what nobody syncs is durable by itself soon") {
  CHECK(volume::VolumeOptions{}.commit_interval_ms <= 1000);
  SimStore ada(WithCommitter(1));
  ada.Save("ada/a", "text");
  const journal::Lsn end = ada.store->Facts().end;
  REQUIRE(Eventually([&] { return ada.store->Facts().durable >= end; }));
  CHECK(SurvivesEveryPowerCut(ada.io, "ada/a"));
}

TEST_CASE("the barrier of each second does not wait for a checkpoint") {
  SimStore ada;
  ada.Save("ada/a", "text");
  std::atomic<bool> checkpointing = false;
  std::atomic<bool> durable = false;
  std::atomic<int> syncs = 0;
  std::thread::id checkpointer;
  ada.io.BeforeEachSync([&] {
    // Its first sync is the barrier, with which the other one would wait.
    if (std::this_thread::get_id() != checkpointer || ++syncs != 2) return;
    checkpointing = true;
    CHECK(Eventually([&] { return durable.load(); }));
  });
  std::thread checkpoint([&] {
    checkpointer = std::this_thread::get_id();
    CHECK(ada.store->Checkpoint().ok());
  });
  REQUIRE(Eventually([&] { return checkpointing.load(); }));
  ada.Save("ada/b", "text");
  const journal::Lsn end = ada.store->Facts().end;
  std::thread committer([&] { CHECK(ada.store->RunCommitterOnce().ok()); });
  CHECK(Eventually([&] { return ada.store->Facts().durable >= end; }));
  durable = true;
  committer.join();
  checkpoint.join();
}

TEST_CASE("chain files and index hold nothing that a barrier did not cover") {
  const bool checkpoint = GENERATE(false, true);
  INFO((checkpoint ? "a checkpoint" : "the committer"));
  SimStore ada;
  const auto run = [&] {
    return checkpoint ? ada.store->Checkpoint() : ada.store->RunCommitterOnce();
  };
  ada.Save("ada/a", "text");
  bool appended = false;
  ada.io.BeforeEachSync([&] {
    if (appended) return;
    appended = true;
    ada.Save("ada/b", "while the barrier is under way");
  });
  const uint64_t records = ada.store->FindAgent("ada")->head.seq.value;
  REQUIRE(run().ok());
  REQUIRE(appended);
  CHECK(LinesOf(ada.io, ada.Ada()) == records);
  CHECK(IndexHolds(ada.io, ada.Ada(), "a"));
  CHECK_FALSE(IndexHolds(ada.io, ada.Ada(), "b"));

  REQUIRE(run().ok());
  CHECK(LinesOf(ada.io, ada.Ada()) == records + 1);
  CHECK(IndexHolds(ada.io, ada.Ada(), "b"));
}

TEST_CASE("records that were read are durable") {
  SimStore ada;
  ada.Save("ada/a", "text");
  uint64_t records = 0;
  REQUIRE(ada.store
              ->ForEachRecord(ada.Ada(), Seq(1),
                              [&](const chain::ParsedRecord&, std::string_view) {
                                ++records;
                                return Status();
                              })
              .ok());
  CHECK(records == ada.store->FindAgent("ada")->head.seq.value);
  CHECK(SurvivesEveryPowerCut(ada.io, "ada/a"));
}

TEST_CASE("the next journal file is made before anyone has to wait for it") {
  SimStore ada(WithCommitter(kNever));
  const uint64_t number = ada.store->Facts().end.journal;
  const uint64_t size = CrashOptions().journal.file_size;
  for (int i = 0; ada.store->Facts().end.offset < size / 2; ++i) {
    ada.Save("ada/f" + std::to_string(i), Bytes(8000, static_cast<char>(i)));
  }
  CHECK(ada.store->Facts().end.journal == number);
  CHECK(Eventually([&] { return ada.io.Stat(journal::JournalPath(number + 1)).ok(); }));
}

TEST_CASE("a finding of damage that comes after the healing is not noted") {
  SimStore ada;
  ada.Save("ada/a", "text");
  const Digest digest = Sha256::Of("text");
  const auto damaged = ada.store->impl().Find(digest).value();
  ada.store->impl().OnCorrupt(digest, damaged, "a test says so");
  CHECK(ada.store->Facts().corrupt.size() == 1);
  ada.Save("ada/b", "text");
  CHECK(ada.store->Facts().corrupt.empty());
  ada.store->impl().OnCorrupt(digest, damaged, "said by one who read before");
  CHECK(ada.store->Facts().corrupt.empty());
  ada.Reopen();
  CHECK(ada.store->Facts().corrupt.empty());
  ada.store->impl().OnCorrupt(digest, ada.store->impl().Find(digest).value(), "damaged again");
  ada.Reopen();
  CHECK(ada.store->Facts().corrupt.size() == 1);
}

TEST_CASE("a chunk whose session was given up while it was read is not damaged") {
  SimStore ada;
  const auto bytes = std::make_shared<const Bytes>("a chunk");
  const Digest digest = Sha256::Of(*bytes);
  auto session = ada.store->StartChunkSession().value();
  REQUIRE(session->Store(digest, bytes).ok());
  const auto where = ada.store->impl().Find(digest).value();
  session.reset();
  ada.store->impl().OnCorrupt(digest, where, "said by one who was reading");
  CHECK(ada.store->Facts().corrupt.empty());
}

TEST_CASE("a stream without inode numbers says so, and serves what it has") {
  SimStore ada;
  ada.Save("ada/a", "text");
  volume::Stream* const stream = ada.store->impl().FindStream(ada.Ada()).value();
  {
    const MutexLock lock(stream->mutex);
    stream->next_id = (uint64_t{1} << kInodeBits) - 1;
  }
  ada.Save("ada/last", "text");
  CHECK(ada.store.Create("ada/b").ToErrno() == ENOSPC);
  CHECK(ada.store.MakeDirectory("ada/d").ToErrno() == ENOSPC);
  CHECK(ada.store.Rename("ada/a", "ada/c", volume::RenameMode::kReplace).ok());
  ada.Reopen();
  CHECK(ada.store.Create("ada/b").ToErrno() == ENOSPC);
  ada.Save("ada/c", "new text");
  ada.CheckVerifies();
}

// A checkpoint syncs for as long as the disk takes, and sealing writes.
TEST_CASE("the barrier of each second waits for no checkpoint") {
  SimStore ada(WithCommitter(1));
  ada.Save("ada/a", "text");
  const journal::Lsn first = ada.store->Facts().end;
  REQUIRE(Eventually([&] { return ada.store->Facts().durable >= first; }));
  std::atomic<bool> held{false};
  std::atomic<bool> let_go{false};
  std::thread::id slow;
  std::atomic<bool> started{false};
  ada.io.BeforeEachSync([&] {
    if (!started || std::this_thread::get_id() != slow) return;
    held = true;
    while (!let_go) std::this_thread::yield();
  });
  std::thread checkpoint([&] {
    slow = std::this_thread::get_id();
    started = true;
    (void)ada.store->Checkpoint().ok();
  });
  CHECK(Eventually([&] { return held.load(); }));
  ada.Save("ada/b", "text");
  const journal::Lsn end = ada.store->Facts().end;
  CHECK(Eventually([&] { return ada.store->Facts().durable >= end; }));
  let_go = true;
  checkpoint.join();
}

TEST_CASE("changes that the index did not get yet are bounded, and none is refused for it") {
  volume::VolumeOptions options = CrashOptions();
  options.max_overlay_bytes = 20'000;
  SimStore ada(options);
  for (int i = 0; i < 200; ++i) {
    ada.Save("ada/f" + std::to_string(i), "text");
    REQUIRE(ada.store->Facts().overlay_bytes < 2 * options.max_overlay_bytes);
  }
  CHECK(ada.store.ReadTree()->size() >= 200);
  ada.Reopen();
  ada.CheckVerifies();
}

TEST_CASE("a lack of room while one chain's file is synced holds up no other") {
  SimStore ada;
  REQUIRE(ada.store.AddAgent("bob").ok());
  for (const char* path : {"ada/a", "bob/a"}) ada.Save(path, "text");
  REQUIRE(ada.store->RunCommitterOnce().ok());
  ada.io.FailAt(1, ENOSPC, SimCall::kDataSync);  // the journal is synced: it is ada's segment
  CHECK_FALSE(ada.store->Checkpoint().ok());
  const StreamId bob = ada.store->FindAgent("bob")->stream;
  const uint64_t records = LinesOf(ada.io, bob);
  ada.Save("ada/b", "text");
  ada.Save("bob/b", "text");
  (void)ada.store->RunCommitterOnce().ok();
  CHECK(LinesOf(ada.io, bob) > records);
  CHECK(ada.store->FindAgent("bob")->read_only_reason.empty());
  ada.Reopen();
  CHECK(ada.store.ReadTree()->count("ada/b") == 1);
  ada.CheckVerifies();
}

TEST_CASE("a full journal that is not sealed yet is verified as well") {
  SimStore ada;
  const uint64_t number = ada.store->Facts().end.journal;
  for (int i = 0; ada.store->Facts().end.journal == number; ++i) {
    ada.Save("ada/f" + std::to_string(i), Bytes(8000, static_cast<char>('a' + i)));
  }
  ada.CheckVerifies();
  const std::string path = journal::JournalPath(number);
  const Bytes bytes = ReadWholeFile(ada.io, path).value();
  const size_t at = bytes.find(R"("path":"f1")");
  REQUIRE(at != Bytes::npos);
  REQUIRE(ada.io.Overwrite(path, at, "X"));
  const auto report = volume::VerifyVolume(*ada.store, {}, {});
  REQUIRE(report.ok());
  const auto names_it = [&](const volume::VerifyProblem& problem) {
    return problem.what == "journal" && problem.where.find(path) != std::string::npos;
  };
  CHECK(std::any_of(report->problems.begin(), report->problems.end(), names_it));
}

}  // namespace memoirfs::testing
