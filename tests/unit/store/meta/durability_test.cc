// The machine stops at every change in turn, and loses what was not synced: what a checkpoint
// acknowledged must be there, or the index must say that it is corrupt.

#include <catch2/catch.hpp>
#include <map>

#include "store/meta/index.h"
#include "tests/support/sim_io.h"

namespace memoirfs::meta {
namespace {

using journal::Lsn;
using testing::SimIo;

constexpr int kRounds = 5;
// Two of them fill LevelDB's write buffer, so that it changes to another log in between.
constexpr size_t kLongValue = 2'200'000;

Bytes KeyOf(int round) { return "key" + std::to_string(round); }
Bytes ValueOf(int round) {
  return round % 2 == 0 ? Bytes(kLongValue, static_cast<char>('a' + round))
                        : "value" + std::to_string(round);
}

// Rounds of a batch and a checkpoint; every third only a flush. The last round whose checkpoint
// returned, 0 when none did.
int Run(FileIo& io) {
  auto index = Index::Open(io, "index");
  if (!index.ok()) return 0;
  int acknowledged = 0;
  for (int round = 1; round <= kRounds; ++round) {
    const Lsn lsn{1, static_cast<uint64_t>(round)};
    Batch batch;
    batch.Put(KeyOf(round), ValueOf(round));
    (*index)->Apply(std::move(batch), lsn);
    if (round % 3 == 0) {
      static_cast<void>((*index)->Flush(lsn));
    } else if ((*index)->FlushAndSync(lsn, "M", std::to_string(round)).ok()) {
      acknowledged = round;
    }
  }
  return acknowledged;
}

enum class Outcome { kWhole, kCorrupt, kWrong };

Outcome Check(FileIo& io, int acknowledged) {
  if (acknowledged == 0) return Outcome::kWhole;  // nothing was promised
  auto index = Index::Open(io, "index");
  if (index.code() == Code::kCorrupt) return Outcome::kCorrupt;
  if (!index.ok()) return Outcome::kWrong;
  const auto checkpoint = (*index)->Get("M");
  if (!checkpoint.ok() || !*checkpoint) return Outcome::kWrong;
  const int round = std::stoi(**checkpoint);
  if (round < acknowledged) return Outcome::kWrong;
  for (int i = 1; i <= round; ++i) {
    const auto got = (*index)->Get(KeyOf(i));
    if (!got.ok() || *got != ValueOf(i)) return Outcome::kWrong;
  }
  return Outcome::kWhole;
}

}  // namespace

TEST_CASE("what a checkpoint acknowledged survives a power cut at any moment") {
  uint64_t changes = 0;
  {
    SimIo io;
    REQUIRE(Run(io) == kRounds);
    changes = io.calls(testing::SimCall::kChange);
  }
  size_t corrupt = 0;
  size_t whole = 0;
  for (uint64_t crash = 1; crash <= changes; ++crash) {
    SimIo io;
    io.CrashAt(crash);
    const int acknowledged = Run(io);
    INFO("crash at change " << crash << " of " << changes << ", acknowledged " << acknowledged);
    const Outcome outcome = Check(*io.AfterPowerCut(crash), acknowledged);
    CHECK(outcome != Outcome::kWrong);
    (outcome == Outcome::kCorrupt ? corrupt : whole)++;
  }
  // Bytes that were not synced may be torn in a log: then it is corrupt, and is rebuilt.
  INFO(corrupt << " corrupt, " << whole << " whole");
  CHECK(whole > 0);
}

TEST_CASE("what was flushed survives a kill of the process at any moment") {
  SimIo io;
  auto index = Index::Open(io, "index");
  REQUIRE(index.ok());
  for (int round = 1; round <= kRounds; ++round) {
    const Lsn lsn{1, static_cast<uint64_t>(round)};
    Batch batch;
    batch.Put(KeyOf(round), ValueOf(round));
    (*index)->Apply(std::move(batch), lsn);
    REQUIRE((*index)->Flush(lsn).ok());
    const auto after = io.AfterKill();
    auto reopened = Index::Open(*after, "index");
    REQUIRE(reopened.ok());
    for (int i = 1; i <= round; ++i) CHECK((*reopened)->Get(KeyOf(i)).value() == ValueOf(i));
  }
}

}  // namespace memoirfs::meta
