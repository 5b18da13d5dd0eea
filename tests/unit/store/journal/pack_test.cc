#include "store/journal/pack.h"

#include <catch2/catch.hpp>

#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

using testing::SimCall;
using testing::SimIo;
using testing::TestBlob;
using testing::TestRecord;
using testing::TestState;

constexpr JournalOptions kOptions{4096, 512};

// A journal of a few frames of every kind, all synced.
struct Store {
  SimIo io;
  std::vector<Location> locations;
  Lsn end;
  std::unique_ptr<Journal> journal;

  Store() {
    testing::MakeFrameDirectories(io);
    journal = std::move(Journal::Create(io, kOptions, 1, 5)).value();
    const std::vector<NewFrame> frames = {
        TestBlob("one"), TestRecord(1, 1, "{\"a\":1}"), TestState("key", "value"),
        ExtendFrame(Sha256::Of("one!"), Sha256::Of("one"), "!"), TestRecord(2, 1, "{}")};
    Result<Appended> appended = journal->Append(frames);
    REQUIRE(appended.ok());
    locations = appended->locations;
    end = appended->end;
    REQUIRE(journal->SyncTo(end).ok());
  }

  void Flip(const std::string& path, uint64_t offset) {
    Bytes byte = std::move(io.Open(path, OpenMode::kRead)).value()->ReadAt(offset, 1).value();
    byte[0] = static_cast<char>(byte[0] ^ 0x10);
    REQUIRE(io.Overwrite(path, offset, byte));
  }

  Bytes Payload(const Location& where) { return PackReader(io).ReadPayload(where).value(); }

  void CheckContents(const PackContents& contents) const {
    REQUIRE(contents.objects.size() == 2);
    CHECK(contents.objects[0] < contents.objects[1]);
    for (const PackedObject& object : contents.objects) {
      const bool blob = object.digest == Sha256::Of("one");
      CHECK(object.location == locations[blob ? 0 : 3]);
    }
    REQUIRE(contents.records.size() == 2);
    CHECK(contents.records[0] == PackedRecord{1, 1, locations[1]});
    CHECK(contents.records[1] == PackedRecord{2, 1, locations[4]});
    CHECK(contents.states == std::vector<Location>{locations[2]});
  }
};

}  // namespace

TEST_CASE("a journal is carried into a pack with the same locations") {
  Store store;
  REQUIRE(CarryIntoPack(store.io, 1, store.end.offset).ok());
  CHECK_FALSE(store.io.Stat(JournalPath(1)).ok());
  bool damaged = true;
  const Result<PackContents> contents = ReadPackContents(store.io, {1}, &damaged);
  REQUIRE(contents.ok());
  CHECK_FALSE(damaged);
  CHECK(contents->damaged.empty());
  store.CheckContents(*contents);
  CHECK(VerifyPack(store.io, {1}).value().empty());
  CHECK(store.Payload(store.locations[2]) == TestState("key", "value").head);
}

TEST_CASE("a pack that was carried is durable before the journal is gone") {
  Store store;
  REQUIRE(CarryIntoPack(store.io, 1, store.end.offset).ok());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const std::unique_ptr<SimIo> left = store.io.AfterPowerCut(seed);
    CHECK(VerifyPack(*left, {1}).value().empty());
    CHECK_FALSE(left->Stat(JournalPath(1)).ok());
  }
}

TEST_CASE("what lies behind the good frames goes to quarantine") {
  Store store;
  const Bytes torn = "torn" + Bytes(100, '\0') + "tail";
  REQUIRE(store.io.Overwrite(JournalPath(1), store.end.offset, Bytes(FrameHeader::kSize, '\0')));
  REQUIRE(store.io.Overwrite(JournalPath(1), store.end.offset, torn));
  REQUIRE(CarryIntoPack(store.io, 1, store.end.offset).ok());
  const std::string name = Sha256::Of(torn).ToHex().substr(0, 16) + ".tail";
  CHECK(ReadWholeFile(store.io, "quarantine/00000000000000000001-" + name).value() == torn);
  CHECK(VerifyPack(store.io, {1}).value().empty());
}

TEST_CASE("a journal without a good frame is no pack") {
  Store store;
  REQUIRE(CarryIntoPack(store.io, 1, 0).ok());
  CHECK_FALSE(store.io.Stat(PackPath({1})).ok());
  CHECK_FALSE(store.io.Stat(JournalPath(1)).ok());
  CHECK(store.io.List("quarantine")->size() == 1);
}

TEST_CASE("damage that was known when a pack was made is listed and no new problem") {
  Store store;
  store.Flip(JournalPath(1), store.locations[1].offset + FrameHeader::kSize);
  REQUIRE(CarryIntoPack(store.io, 1, store.end.offset).ok());
  const Result<PackContents> contents = ReadPackContents(store.io, {1}, nullptr);
  REQUIRE(contents.ok());
  REQUIRE(contents->damaged.size() == 1);
  CHECK(contents->damaged[0].offset == store.locations[1].offset);
  CHECK(contents->records.size() == 1);
  CHECK(VerifyPack(store.io, {1}).value().empty());
}

TEST_CASE("carrying can be repeated after any failure in it") {
  for (uint64_t n = 1;; ++n) {
    Store store;
    store.io.CrashAt(n);
    if (CarryIntoPack(store.io, 1, store.end.offset).ok()) break;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      INFO("call " << n << " seed " << seed);
      const std::unique_ptr<SimIo> left = store.io.AfterPowerCut(seed);
      if (left->Stat(JournalPath(1)).ok()) {
        CHECK(CarryIntoPack(*left, 1, store.end.offset).ok());
      }
      store.CheckContents(ReadPackContents(*left, {1}, nullptr).value());
      CHECK(VerifyPack(*left, {1}).value().empty());
    }
  }
}

// After a failed sync the frames may be in the page cache alone, and count as written there.
TEST_CASE(
    "what a failed sync left is carried for good, where there is no room for a copy as well") {
  Store store;
  const NewFrame two = TestBlob("two");
  const Lsn end = store.journal->Append({&two, 1})->end;
  store.io.FailAt(1, EIO, SimCall::kDataSync);
  REQUIRE_FALSE(store.journal->SyncTo(end).ok());
  const int err = GENERATE(0, ENOSPC, EDQUOT);
  const auto left = store.io.AfterKill();
  if (err != 0) left->FailAt(1, err, SimCall::kCreate);
  REQUIRE(CarryIntoPack(*left, 1, end.offset).ToString() == "ok");
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto cut = left->AfterPowerCut(seed);
    CHECK(VerifyPack(*cut, {1})->empty());
    CHECK(ReadPackContents(*cut, {1}, nullptr)->objects.size() == 3);
  }
}

TEST_CASE("a sealing that was interrupted anywhere leaves all frames") {
  for (uint64_t n = 1;; ++n) {
    Store store;
    REQUIRE(store.journal->PrepareNext().ok());
    const NewFrame filler = TestBlob(Bytes(3700, 'x'));
    const Result<Appended> filled = store.journal->Append({&filler, 1});
    REQUIRE(filled.ok());
    REQUIRE(store.journal->SyncTo(filled->end).ok());
    REQUIRE(store.journal->FullJournals().size() == 1);
    const Lsn full = store.journal->FullJournals()[0];
    store.io.CrashAt(n);
    if (store.journal->SealOldest().ok()) break;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      INFO("call " << n << " seed " << seed);
      const std::unique_ptr<SimIo> left = store.io.AfterPowerCut(seed);
      if (left->Stat(JournalPath(1)).ok()) {
        REQUIRE(testing::ScanJournal(*left, 1).scan.good_end >= full.offset);
        REQUIRE(CarryIntoPack(*left, 1, full.offset).ok());
      }
      store.CheckContents(ReadPackContents(*left, {1}, nullptr).value());
    }
  }
}

TEST_CASE("a footer that a sealing began is neither a torn tail nor quarantined") {
  Store store;
  const Bytes footer_start("\xF7MFOOT\r\n", 8);
  REQUIRE(store.io.Overwrite(JournalPath(1), store.end.offset, Bytes(FrameHeader::kSize, '\0')));
  REQUIRE(store.io.Overwrite(JournalPath(1), store.end.offset, footer_start));
  CHECK_FALSE(testing::ScanJournal(store.io, 1).scan.torn_tail);
  REQUIRE(CarryIntoPack(store.io, 1, store.end.offset).ok());
  CHECK(store.io.List("quarantine")->empty());
}

TEST_CASE("every flipped byte of a pack is reported, and its frames are still found") {
  Store store;
  REQUIRE(CarryIntoPack(store.io, 1, store.end.offset).ok());
  const std::string path = PackPath({1});
  const uint64_t size = store.io.Stat(path)->size;
  for (uint64_t offset = 0; offset < size; ++offset) {
    INFO("offset " << offset);
    store.Flip(path, offset);
    const Result<std::vector<std::string>> problems = VerifyPack(store.io, {1});
    bool damaged = false;
    const Result<PackContents> contents = ReadPackContents(store.io, {1}, &damaged);
    store.Flip(path, offset);
    REQUIRE(problems.ok());
    CHECK_FALSE(problems->empty());
    REQUIRE(contents.ok());
    CHECK(damaged == (offset >= store.end.offset));
    store.CheckContents(*contents);
  }
}

TEST_CASE("a truncated pack is reported, and what is left of it is found") {
  Store store;
  REQUIRE(CarryIntoPack(store.io, 1, store.end.offset).ok());
  const std::string path = PackPath({1});
  const uint64_t size = store.io.Stat(path)->size;
  for (uint64_t left = 0; left < size; left += 7) {
    INFO("bytes left " << left);
    const std::unique_ptr<SimIo> io = store.io.AfterKill();
    REQUIRE(std::move(io->Open(path, OpenMode::kReadWrite)).value()->Truncate(left).ok());
    CHECK_FALSE(VerifyPack(*io, {1}).value().empty());
    bool damaged = false;
    const Result<PackContents> contents = ReadPackContents(*io, {1}, &damaged);
    REQUIRE(contents.ok());
    CHECK(damaged);
    if (left >= store.end.offset) store.CheckContents(*contents);
  }
}

TEST_CASE("reading what is not there says what is missing") {
  Store store;
  PackReader reader(store.io);
  CHECK(reader.ReadPayload({{9}, 0, 3, FrameType::kBlob}).code() == Code::kNotFound);
  CHECK(reader.ReadPayload({{1}, 4096, 3, FrameType::kBlob}).code() == Code::kCorrupt);
  CHECK(reader.ReadPayload({{1}, ~uint64_t{0} - 8, 3, FrameType::kBlob}).code() == Code::kCorrupt);
  CHECK(reader.ReadPayload({{1}, 0, FrameHeader::kMaxPayload + 1, FrameType::kBlob}).code() ==
        Code::kCorrupt);
  CHECK(ReadPackContents(store.io, {9}, nullptr).code() == Code::kNotFound);
}

TEST_CASE("a reader keeps few files open, and forgets one when it is told to") {
  SimIo io;
  testing::MakeFrameDirectories(io);
  std::vector<Location> locations;
  for (uint64_t n = 0; n < 3; ++n) {
    std::unique_ptr<BulkWriter> bulk = std::move(CreateBulkPack(io, n, 1)).value();
    const Bytes content = std::to_string(n);
    locations.push_back(bulk->Append(Sha256::Of(content), content).value());
    REQUIRE(bulk->Finish().ok());
  }
  PackReader reader(io, 2);
  const auto opens_of = [&](const Location& where) {
    const uint64_t before = io.calls(SimCall::kOpen);
    REQUIRE(reader.ReadPayload(where).ok());
    return io.calls(SimCall::kOpen) - before;
  };
  CHECK(opens_of(locations[0]) > 0);
  CHECK(opens_of(locations[1]) > 0);
  CHECK(opens_of(locations[0]) == 0);
  CHECK(opens_of(locations[2]) > 0);
  CHECK(opens_of(locations[0]) == 0);
  CHECK(opens_of(locations[1]) > 0);  // the least recently used one had to go
  reader.Invalidate(locations[1].pack);
  CHECK(opens_of(locations[1]) > 0);
}

}  // namespace memoirfs::journal
