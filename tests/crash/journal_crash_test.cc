// Random appends, barriers, rotations and sealings, with the machine stopped at every call that
// changes the disk, and several power cuts for each. What was acknowledged is always found, and
// what is found is a prefix of what was appended.

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "store/journal/journal.h"
#include "store/journal/pack.h"
#include "store/journal/replay.h"
#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

using testing::SimCall;
using testing::SimIo;

constexpr JournalOptions kOptions{4096, 512};
constexpr uint64_t kSteps = 60;
constexpr uint64_t kCutsOfEachCrash = 4;

struct AppendedFrame {
  Location where;
  Bytes payload;
};

// A life of a journal: what it was given and what it acknowledged.
class Life {
 public:
  Life(SimIo& io, uint64_t seed, uint64_t first_journal)
      : io_(io), random_(seed), number_(first_journal) {}

  // Until `steps` are done or a call fails.
  void Run(uint64_t steps) {
    Result<std::unique_ptr<Journal>> made = Journal::Create(io_, kOptions, number_, number_);
    if (!made.ok()) return;
    journal_ = std::move(made).value();
    for (uint64_t step = 0; step < steps && Step(); ++step) {
    }
  }

  const std::vector<AppendedFrame>& appended() const { return appended_; }
  size_t acknowledged() const { return acknowledged_; }

 private:
  bool Step() {
    switch (random_() % 8) {
      case 0:
      case 1:
        return Sync();
      case 2:
        return journal_->PrepareNext().ok();
      case 3:
        return Seal();
      default:
        return Append();
    }
  }

  bool Append() {
    std::vector<NewFrame> frames;
    for (uint64_t n = 1 + random_() % 3; n > 0; --n) {
      const Bytes line(random_() % 700, static_cast<char>('a' + random_() % 26));
      frames.push_back(testing::TestRecord(1, ++seq_, line));
    }
    Result<Appended> appended = journal_->Append(frames);
    if (!appended.ok()) return false;
    for (size_t i = 0; i < frames.size(); ++i) {
      appended_.push_back({appended->locations[i], frames[i].head});
    }
    return true;
  }

  bool Sync() {
    const size_t before = appended_.size();
    if (!journal_->SyncTo(journal_->end()).ok()) return false;
    acknowledged_ = before;
    return true;
  }

  bool Seal() {
    if (journal_->FullJournals().empty()) return true;
    return Sync() && journal_->SealOldest().ok();
  }

  SimIo& io_;
  std::mt19937_64 random_;
  const uint64_t number_;
  std::unique_ptr<Journal> journal_;
  std::vector<AppendedFrame> appended_;
  size_t acknowledged_ = 0;
  uint64_t seq_ = 0;
};

using Payloads = std::map<Lsn, Bytes>;

// The records of packs and journals, as recovery sees them.
Payloads FindRecords(SimIo& io) {
  Payloads found;
  const auto add = [&](const FrameHeader& header, const Location& where, ByteView payload) {
    if (header.type == FrameType::kRecord) found[{where.pack.number, where.offset}] = payload;
    return Status();
  };
  const Result<std::vector<JournalFinding>> findings = ReplayJournals(io, {}, add);
  REQUIRE(findings.status().ToString() == "ok");
  for (const JournalFinding& finding : *findings) CHECK(finding.scan.damage.empty());
  PackReader reader(io);
  for (uint64_t number = 0; number < 100; ++number) {
    if (!io.Stat(PackPath({number})).ok()) continue;
    bool footer_damaged = false;
    const Result<PackContents> contents = ReadPackContents(io, {number}, &footer_damaged);
    REQUIRE(contents.status().ToString() == "ok");
    CHECK_FALSE(footer_damaged);
    for (const PackedRecord& record : contents->records) {
      found[{number, record.location.offset}] = reader.ReadPayload(record.location).value();
    }
  }
  return found;
}

// Everything acknowledged is there, and nothing is there without all that was appended before it.
void CheckPrefix(const Life& life, const Payloads& found) {
  CHECK(found.size() >= life.acknowledged());
  REQUIRE(found.size() <= life.appended().size());
  auto next = life.appended().begin();
  for (const auto& [place, payload] : found) {
    CHECK(place == PlaceIn(next->where.pack, next->where.offset));
    CHECK((payload == next->payload));
    ++next;
  }
}

struct CrashedLife {
  SimIo io;
  std::unique_ptr<Life> life;

  CrashedLife(uint64_t seed, uint64_t crash_at) {
    testing::MakeFrameDirectories(io);
    if (crash_at > 0) io.CrashAt(crash_at);
    life = std::make_unique<Life>(io, seed, 1);
    life->Run(kSteps);
  }
};

uint64_t ChangesOf(uint64_t seed) {
  CrashedLife whole(seed, 0);
  CHECK(whole.life->acknowledged() > 20);
  CHECK(whole.io.List("packs")->size() + whole.io.List("journal")->size() > 3);
  return whole.io.calls(SimCall::kChange);
}

Status Recover(SimIo& io) {
  const auto ignore = [](const FrameHeader&, const Location&, ByteView) { return Status(); };
  ASSIGN_OR_RETURN(const std::vector<JournalFinding> findings, ReplayJournals(io, {}, ignore));
  return CarryJournals(io, findings);
}

}  // namespace

TEST_CASE("a power cut at any call loses nothing acknowledged and leaves a prefix") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const uint64_t changes = ChangesOf(seed);
    for (uint64_t crash_at = 1; crash_at <= changes; ++crash_at) {
      const CrashedLife crashed(seed, crash_at);
      for (uint64_t cut = 0; cut < kCutsOfEachCrash; ++cut) {
        INFO("seed " << seed << ", crash at " << crash_at << ", cut " << cut);
        const std::unique_ptr<SimIo> left = crashed.io.AfterPowerCut(cut);
        CheckPrefix(*crashed.life, FindRecords(*left));
      }
    }
  }
}

TEST_CASE("a kill at any call loses nothing that was appended") {
  const uint64_t changes = ChangesOf(4);
  for (uint64_t crash_at = 1; crash_at <= changes; ++crash_at) {
    INFO("crash at " << crash_at);
    const CrashedLife crashed(4, crash_at);
    const std::unique_ptr<SimIo> left = crashed.io.AfterKill();
    const Payloads found = FindRecords(*left);
    CHECK(found.size() == crashed.life->appended().size());
    CheckPrefix(*crashed.life, found);
  }
}

TEST_CASE("recovery keeps what it found, also when it is cut short at any call") {
  const uint64_t seed = 5;
  const uint64_t changes = ChangesOf(seed);
  for (uint64_t crash_at = 1; crash_at <= changes; crash_at += 7) {
    const CrashedLife crashed(seed, crash_at);
    const std::unique_ptr<SimIo> first = crashed.io.AfterPowerCut(crash_at);
    const Payloads before = FindRecords(*first);
    for (uint64_t second_crash = 1;; ++second_crash) {
      INFO("crash at " << crash_at << ", in recovery at " << second_crash);
      const std::unique_ptr<SimIo> recovering = first->AfterKill();
      recovering->CrashAt(second_crash);
      const bool done = Recover(*recovering).ok();
      const std::unique_ptr<SimIo> left = recovering->AfterPowerCut(second_crash);
      CHECK((FindRecords(*left) == before));
      CHECK(Recover(*left).ok());
      CHECK((FindRecords(*left) == before));
      CHECK(ListJournals(*left)->empty());
      if (done) break;
    }
  }
}

TEST_CASE("a journal goes on after recovery, in a new file") {
  CrashedLife crashed(6, 90);
  const std::unique_ptr<SimIo> left = crashed.io.AfterPowerCut(6);
  const size_t before = FindRecords(*left).size();
  REQUIRE(Recover(*left).ok());
  Life second(*left, 7, 50);
  second.Run(kSteps);
  CHECK(second.acknowledged() > 20);
  const std::unique_ptr<SimIo> cut = left->AfterPowerCut(8);
  CHECK(FindRecords(*cut).size() >= before + second.acknowledged());
}

}  // namespace memoirfs::journal
