#include "store/journal/replay.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

using testing::SimIo;
using testing::TestRecord;

constexpr JournalOptions kOptions{4096, 512};

// Three journals: 1 and 2 are full, 3 is active. Each append is one record of 700 bytes.
struct Store {
  SimIo io;
  std::unique_ptr<Journal> journal;
  std::vector<Location> records;

  Store() {
    testing::MakeFrameDirectories(io);
    journal = std::move(Journal::Create(io, kOptions, 1, 5)).value();
    while (journal->end().journal < 3) Add();
  }

  void Add() {
    const NewFrame frame = TestRecord(1, records.size() + 1, Bytes(700, 'r'));
    Result<Appended> appended = journal->Append({&frame, 1});
    REQUIRE(appended.ok());
    records.push_back(appended->locations[0]);
  }

  void Zero(const Location& where) {
    REQUIRE(io.Overwrite(JournalPath(where.pack.number), where.offset,
                         Bytes(FrameHeader::kSize + where.length, '\0')));
  }

  const Location& LastOf(uint64_t number) const {
    const Location* last = nullptr;
    for (const Location& where : records) {
      if (where.pack.number == number) last = &where;
    }
    REQUIRE(last != nullptr);
    return *last;
  }
};

struct Replayed {
  std::vector<JournalFinding> findings;
  std::vector<Location> records;
};

Replayed Replay(SimIo& io, Lsn from = {}) {
  Replayed replayed;
  const auto keep = [&](const FrameHeader& header, const Location& where, ByteView) {
    if (header.type == FrameType::kRecord) replayed.records.push_back(where);
    return Status();
  };
  Result<std::vector<JournalFinding>> findings = ReplayJournals(io, from, keep);
  REQUIRE(findings.status().ToString() == "ok");
  replayed.findings = std::move(findings).value();
  return replayed;
}

}  // namespace

TEST_CASE("a replay visits all journals in order, from a point on") {
  Store store;
  CHECK(Replay(store.io).records == store.records);
  const Location& middle = store.records[store.records.size() / 2];
  const Replayed later = Replay(store.io, PlaceIn(middle.pack, middle.offset));
  CHECK(later.records ==
        std::vector(store.records.begin() + store.records.size() / 2, store.records.end()));
  CHECK(later.findings.size() == 3);
}

TEST_CASE("a replay of nothing finds nothing") {
  SimIo io;
  testing::MakeFrameDirectories(io);
  REQUIRE(io.Open("journal/notes.txt", OpenMode::kCreate).ok());
  REQUIRE(io.Open(JournalPath(1) + ".tmp", OpenMode::kCreate).ok());
  CHECK(Replay(io).findings.empty());
}

TEST_CASE("a journal that lost its end cuts off what was appended later") {
  Store store;
  store.Zero(store.LastOf(1));  // never acknowledged: reads as if it had not been written
  const Replayed replayed = Replay(store.io);
  CHECK(replayed.records.back() < store.LastOf(1));
  REQUIRE(replayed.findings.size() == 3);
  CHECK_FALSE(replayed.findings[0].cut_off);
  CHECK(replayed.findings[0].scan.damage.empty());
  for (const size_t later : {1U, 2U}) {
    CHECK(replayed.findings[later].cut_off);
    CHECK(replayed.findings[later].scan.good_end == 0);
    CHECK(replayed.findings[later].scan.torn_tail);
  }
  REQUIRE(CarryJournals(store.io, replayed.findings).ok());
  CHECK(store.io.List("packs")->size() == 1);
  CHECK(store.io.List("quarantine")->size() == 2);
}

TEST_CASE("what was cut off does not come back when carrying is cut short") {
  Store store;
  store.Zero(store.LastOf(1));
  const std::vector<Location> counted = Replay(store.io).records;
  bool done = false;
  for (uint64_t n = 1; !done; ++n) {
    INFO("call " << n);
    const std::unique_ptr<SimIo> io = store.io.AfterKill();
    io->CrashAt(n);
    done = CarryJournals(*io, Replay(*io).findings).ok();
    const std::unique_ptr<SimIo> left = io->AfterPowerCut(n);
    REQUIRE(CarryJournals(*left, Replay(*left).findings).ok());
    std::vector<Location> kept;
    const std::vector<std::string> packs = left->List("packs").value();
    for (const std::string& pack : packs) {
      const PackId id{std::strtoull(pack.c_str(), nullptr, 10)};
      if (PackPath(id) != "packs/" + pack) continue;  // a temporary that a crash left
      const PackContents contents = ReadPackContents(*left, id, nullptr).value();
      for (const PackedRecord& record : contents.records) {
        kept.push_back(record.location);
      }
    }
    CHECK(kept == counted);
  }
}

TEST_CASE("the end of a journal that a later one calls durable is damage, and nothing is cut off") {
  Store store;
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  store.Add();
  store.Zero(store.LastOf(1));
  const Replayed replayed = Replay(store.io);
  CHECK(replayed.records.size() == store.records.size() - 1);
  REQUIRE(replayed.findings.size() == 3);
  REQUIRE(replayed.findings[0].scan.damage.size() == 1);
  CHECK(replayed.findings[0].scan.damage[0].offset == store.LastOf(1).offset);
  CHECK(replayed.findings[0].scan.good_end == store.journal->FullJournals()[0].offset);
  CHECK_FALSE(replayed.findings[2].cut_off);
}

TEST_CASE("a damaged first frame of an acknowledged journal cuts nothing off") {
  Store store;
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  store.Add();
  REQUIRE(store.io.Overwrite(JournalPath(2), 0, Bytes(8, '\0')));
  const Replayed replayed = Replay(store.io);
  CHECK(replayed.records == store.records);
  CHECK(replayed.findings[1].scan.damage.size() == 1);
}

TEST_CASE("every flipped byte of acknowledged journals is damage of one place, and nothing more") {
  Store store;
  store.Add();
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  const std::vector<Lsn> full = store.journal->FullJournals();
  for (const Lsn& end : full) {
    const std::string path = JournalPath(end.journal);
    const Bytes whole = ReadWholeFile(store.io, path).value();
    for (uint64_t offset = 0; offset < end.offset; offset += 5) {
      INFO(path << " at " << offset);
      REQUIRE(store.io.Overwrite(path, offset, Bytes(1, static_cast<char>(whole[offset] ^ 4))));
      const Replayed replayed = Replay(store.io);
      REQUIRE(store.io.Overwrite(path, offset, whole.substr(offset, 1)));
      CHECK(replayed.records.size() + 1 >= store.records.size());
      CHECK(replayed.findings[end.journal - 1].scan.damage.size() == 1);
      CHECK_FALSE(replayed.findings.back().cut_off);
    }
  }
}

}  // namespace memoirfs::journal
