#include "store/journal/journal.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <thread>

#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

using testing::SimCall;
using testing::SimIo;
using testing::TestBlob;
using testing::TestRecord;

constexpr uint64_t kEpoch = 5;
constexpr JournalOptions kSmall{8192, 1024};

struct Store {
  SimIo io;
  std::unique_ptr<Journal> journal;

  explicit Store(JournalOptions options = kSmall) {
    testing::MakeFrameDirectories(io);
    Result<std::unique_ptr<Journal>> made = Journal::Create(io, options, 1, kEpoch);
    REQUIRE(made.status().ToString() == "ok");
    journal = std::move(made).value();
  }

  Result<Appended> Append(const NewFrame& frame, AppendClass c = AppendClass::kNormal) {
    return journal->Append({&frame, 1}, c);
  }
  Lsn MustAppend(const NewFrame& frame) {
    Result<Appended> appended = Append(frame);
    REQUIRE(appended.status().ToString() == "ok");
    return appended->end;
  }
  Result<Bytes> Read(const Location& where) { return PackReader(io).ReadPayload(where); }
};

// Fills the active journal until an append goes to the next one; where that append ended.
Lsn FillJournal(Store& store) {
  const uint64_t number = store.journal->end().journal;
  Lsn end;
  while (end.journal <= number) end = store.MustAppend(TestBlob(Bytes(1000, 'x')));
  return end;
}

}  // namespace

TEST_CASE("appended frames are read back where they were put") {
  Store store;
  const std::vector<NewFrame> frames = {TestBlob("one"), TestRecord(1, 1, "{}")};
  Result<Appended> appended = store.journal->Append(frames);
  REQUIRE(appended.ok());
  REQUIRE(appended->locations.size() == 2);
  CHECK(store.Read(appended->locations[0]).value() == frames[0].head);
  CHECK(store.Read(appended->locations[1]).value() == frames[1].head);
  CHECK(appended->end == store.journal->end());
  CHECK(store.journal->durable() < appended->end);
}

TEST_CASE("a group of frames is one write") {
  Store store;
  const uint64_t before = store.io.calls(SimCall::kWrite);
  REQUIRE(store.journal->Append(std::vector{TestBlob("a"), TestBlob("b")}).ok());
  CHECK(store.io.calls(SimCall::kWrite) == before + 1);
}

TEST_CASE("a barrier makes durable and is one fdatasync, and a second one is none") {
  Store store;
  const Lsn end = store.MustAppend(TestBlob("a"));
  REQUIRE(store.journal->SyncTo(end).ok());
  CHECK(store.journal->durable() == end);
  CHECK(store.journal->sync_count() == 1);
  REQUIRE(store.journal->SyncTo(end).ok());
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  CHECK(store.journal->sync_count() == 1);
}

TEST_CASE("a barrier without followers leaves a mark that says how far it was durable") {
  Store store;
  const Lsn end = store.MustAppend(TestBlob("a"));
  REQUIRE(store.journal->SyncTo(end).ok());
  const testing::FramesOfFile found = testing::ScanJournal(store.io, 1);
  REQUIRE(found.frames.size() == 2);
  CHECK(found.frames[1].header.type == FrameType::kMark);
  CHECK(found.frames[1].header.durable_upto == end);
  CHECK(found.scan.durable_upto == end);
}

TEST_CASE("what is appended while the disk works is not durable by that barrier") {
  Store store;
  const Lsn end = store.MustAppend(TestBlob("before"));
  Lsn later;
  store.io.BeforeEachSync([&] {
    if (later == Lsn{}) later = store.MustAppend(TestBlob("meanwhile"));
  });
  REQUIRE(store.journal->SyncTo(end).ok());
  CHECK(store.journal->durable() == end);
  CHECK(store.journal->end() == later);  // no mark: what comes next will say it
  REQUIRE(store.journal->SyncTo(later).ok());
  CHECK(store.journal->sync_count() == 2);
}

TEST_CASE("a journal file that has its name is whole after every power cut") {
  Store store;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const std::unique_ptr<SimIo> left = store.io.AfterPowerCut(seed);
    CHECK(left->Stat(JournalPath(1))->size == kSmall.file_size);
  }
}

TEST_CASE("a sync of what was not appended is refused") {
  Store store;
  CHECK(store.journal->SyncTo({1, 8}).code() == Code::kInvalidArgument);
}

TEST_CASE("all that arrive during a barrier share the next one") {
  Store store({1 << 20, 1024});
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    // The disk is so slow that everybody has appended before the first barrier is through.
    std::latch all_appended(kThreads);
    store.io.BeforeEachSync([&] { all_appended.wait(); });
    std::atomic<int> failures = 0;
    const uint64_t before = store.journal->sync_count();
    const auto save = [&](uint32_t thread) {
      const NewFrame frame = TestRecord(thread, 1, "{}");
      const Result<Appended> appended = store.journal->Append({&frame, 1});
      all_appended.count_down();
      if (!appended.ok() || !store.journal->SyncTo(appended->end).ok()) ++failures;
      if (store.journal->durable() < appended->end) ++failures;
    };
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) threads.emplace_back(save, t);
    for (std::thread& thread : threads) thread.join();
    CHECK(failures == 0);
    CHECK(store.journal->sync_count() - before <= 2);
  }
  size_t records = 0;
  for (const testing::ReadFrame& frame : testing::ScanJournal(store.io, 1).frames) {
    records += frame.header.type == FrameType::kRecord ? 1 : 0;
  }
  CHECK(records == size_t{kThreads} * kRounds);
}

TEST_CASE("appends go on in the next file when one is full") {
  Store store;
  const Lsn end = FillJournal(store);
  CHECK(end.journal == 2);
  REQUIRE(store.journal->FullJournals().size() == 1);
  const Lsn full = store.journal->FullJournals()[0];
  CHECK(full.journal == 1);
  CHECK(full.offset > kSmall.file_size - 1200);
  CHECK(testing::ScanJournal(store.io, 1).scan.good_end == full.offset);
  CHECK(testing::ScanJournal(store.io, 2).scan.good_end == end.offset);
}

TEST_CASE("a barrier syncs the files that were left behind too, oldest first") {
  Store store;
  FillJournal(store);
  FillJournal(store);
  const Lsn end = store.journal->end();
  REQUIRE(store.journal->SyncTo(end).ok());
  CHECK(store.journal->sync_count() == 3);
  const std::unique_ptr<SimIo> left = store.io.AfterPowerCut(1);
  CHECK(testing::ScanJournal(*left, 1).scan.good_end == store.journal->FullJournals()[0].offset);
  CHECK(testing::ScanJournal(*left, 3).scan.good_end >= end.offset);
}

TEST_CASE("the next file is prepared from half full on, once") {
  Store store;
  REQUIRE(store.journal->PrepareNext().ok());
  CHECK_FALSE(store.io.Stat(JournalPath(2)).ok());
  store.MustAppend(TestBlob(Bytes(5000, 'x')));
  REQUIRE(store.journal->PrepareNext().ok());
  CHECK(store.io.Stat(JournalPath(2))->size == kSmall.file_size);
  const uint64_t calls = store.io.calls();
  REQUIRE(store.journal->PrepareNext().ok());
  CHECK(store.io.calls() == calls);
}

TEST_CASE("a file that was half prepared is made anew") {
  Store store;
  store.MustAppend(TestBlob(Bytes(5000, 'x')));
  REQUIRE(store.io.Open(JournalPath(2) + ".tmp", OpenMode::kCreate).ok());
  REQUIRE(store.journal->PrepareNext().ok());
  CHECK_FALSE(store.io.Stat(JournalPath(2) + ".tmp").ok());
  CHECK(store.io.Stat(JournalPath(2))->size == kSmall.file_size);
}

TEST_CASE("a group that no file can hold is refused, and the longest one goes to any file") {
  Store store;
  // A file after the first one starts with a mark of 64 bytes.
  const uint64_t longest = kSmall.file_size - 64 - FrameHeader::kSize - Digest::kSize;
  CHECK(store.Append(TestBlob(Bytes(longest + 1, 'x'))).code() == Code::kInvalidArgument);
  CHECK_FALSE(store.journal->failed());
  for (uint64_t number = 1; number <= 3; ++number) {
    CHECK(store.MustAppend(TestBlob(Bytes(longest, 'x'))).journal == number);
  }
}

TEST_CASE("on a full disk the reserve is for what cleans up") {
  Store store;
  store.io.SetCapacity(kSmall.file_size + 100);
  Status status;
  while (status.ok()) status = store.Append(TestBlob(Bytes(500, 'x'))).status();
  CHECK(status.code() == Code::kNoSpace);
  CHECK_FALSE(store.journal->failed());
  const Lsn end = store.journal->end();
  CHECK(store.Append(TestBlob(Bytes(500, 'x'))).code() == Code::kNoSpace);
  CHECK(store.journal->end() == end);
  CHECK(store.Append(TestRecord(1, 1, "{}"), AppendClass::kReserve).ok());

  SECTION("space that comes back is used") {
    store.io.SetCapacity(1 << 20);
    CHECK(FillJournal(store).journal == 2);
  }
  SECTION("the reserve ends too") {
    status = {};
    while (status.ok()) {
      status = store.Append(TestRecord(1, 1, "{}"), AppendClass::kReserve).status();
    }
    CHECK(status.code() == Code::kNoSpace);
  }
}

TEST_CASE("a journal that began small on a full disk goes on in whole files") {
  constexpr JournalOptions kWhole{64 << 10, 32 << 10, 4 << 10};
  SimIo io;
  testing::MakeFrameDirectories(io);
  io.SetCapacity(30 << 10);
  auto journal = std::move(Journal::Create(io, kWhole, 1, kEpoch).value());
  CHECK(io.Stat(JournalPath(1))->size == 16 << 10);
  const auto append = [&](size_t size) {
    const NewFrame frame = TestBlob(Bytes(size, 'x'));
    return journal->Append({&frame, 1}).status();
  };
  CHECK(append(8 << 10).ok());  // the reserve is not all of it
  CHECK(append(8 << 10).code() == Code::kNoSpace);
  CHECK(append(40 << 10).code() == Code::kNoSpace);  // no file of now, but one of later holds it
  CHECK(append(64 << 10).code() == Code::kInvalidArgument);

  io.SetCapacity(1 << 20);
  CHECK(append(40 << 10).ok());
  CHECK(io.Stat(JournalPath(2))->size == 64 << 10);
}

TEST_CASE("a journal is not begun where not even the smallest file has room") {
  SimIo io;
  testing::MakeFrameDirectories(io);
  io.SetCapacity(4000);
  CHECK(Journal::Create(io, {64 << 10, 8 << 10, 4 << 10}, 1, kEpoch).status().code() ==
        Code::kNoSpace);
}

TEST_CASE("a journal is settled when nothing but its own marks is not durable") {
  Store store;
  CHECK(store.journal->settled());
  const Lsn end = store.MustAppend(TestBlob("a"));
  CHECK_FALSE(store.journal->settled());
  REQUIRE(store.journal->SyncTo(end).ok());
  CHECK(store.journal->end() > store.journal->durable());  // a mark
  CHECK(store.journal->settled());
}

TEST_CASE("a disk that fills up while a file is prepared is no failure of the journal") {
  Store store;
  store.MustAppend(TestBlob(Bytes(7000, 'x')));
  store.io.FailAt(1, ENOSPC, SimCall::kWrite);
  CHECK(store.Append(TestBlob(Bytes(2000, 'x'))).code() == Code::kNoSpace);
  CHECK_FALSE(store.io.Stat(JournalPath(2) + ".tmp").ok());
  CHECK(store.Append(TestBlob(Bytes(2000, 'x'))).ok());
}

TEST_CASE("after a failed write the journal is read-only") {
  Store store;
  const Lsn good = store.MustAppend(TestBlob("a"));
  SECTION("that wrote nothing") { store.io.FailAt(1, EIO, SimCall::kWrite); }
  SECTION("that wrote a part") { store.io.ShortWriteAt(1); }
  SECTION("for lack of space, in a file that was filled before") {
    store.io.FailAt(1, ENOSPC, SimCall::kWrite);
  }
  CHECK_FALSE(store.Append(TestBlob("b")).ok());
  CHECK(store.journal->failed());
  CHECK(store.Append(TestBlob("c")).code() == Code::kReadOnly);
  CHECK_FALSE(store.journal->SyncTo(good).ok());
  CHECK(store.journal->PrepareNext().code() == Code::kReadOnly);
  CHECK(store.journal->SealOldest().code() == Code::kReadOnly);
  CHECK(testing::ScanJournal(store.io, 1).frames.size() == 1);
}

TEST_CASE("after a failed fdatasync nothing is called durable any more") {
  Store store;
  const Lsn end = store.MustAppend(TestBlob("a"));
  store.io.FailAt(1, EIO, SimCall::kDataSync);
  CHECK(store.journal->SyncTo(end).code() == Code::kIo);
  CHECK(store.journal->SyncTo(end).code() == Code::kIo);
  CHECK(store.journal->durable() < end);
  CHECK(store.Append(TestBlob("b")).code() == Code::kReadOnly);
}

TEST_CASE("a sealed journal is a pack, and its locations stay good") {
  Store store;
  Result<Appended> first = store.Append(TestBlob("first"));
  REQUIRE(first.ok());
  PackReader reader(store.io);
  REQUIRE(reader.ReadPayload(first->locations[0]).ok());
  FillJournal(store);
  CHECK(store.journal->SealOldest().code() == Code::kInvalidArgument);
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  REQUIRE(store.journal->SealOldest().ok());
  CHECK(store.journal->FullJournals().empty());
  CHECK(store.journal->SealOldest().code() == Code::kNotFound);
  CHECK_FALSE(store.io.Stat(JournalPath(1)).ok());
  CHECK(VerifyPack(store.io, {1}).value().empty());
  CHECK(reader.ReadPayload(first->locations[0]).value() == TestBlob("first").head);
  CHECK(store.Read(first->locations[0]).value() == TestBlob("first").head);
}

TEST_CASE("a sealing that found the disk full can be repeated") {
  Store store;
  FillJournal(store);
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  store.io.FailAt(1, ENOSPC, SimCall::kWrite);
  CHECK(store.journal->SealOldest().code() == Code::kNoSpace);
  CHECK_FALSE(store.journal->failed());
  REQUIRE(store.journal->SealOldest().ok());
  CHECK(VerifyPack(store.io, {1}).value().empty());
}

TEST_CASE("a sealing whose sync failed is never repeated") {
  Store store;
  FillJournal(store);
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  store.io.FailAt(1, EIO, SimCall::kSync);
  CHECK(store.journal->SealOldest().code() == Code::kIo);
  CHECK(store.journal->failed());
}

TEST_CASE("a journal that was stopped cleanly goes on where it stood") {
  Store store;
  store.MustAppend(TestBlob(Bytes(5000, 'x')));
  REQUIRE(store.journal->PrepareNext().ok());
  REQUIRE(store.journal->SyncTo(store.journal->end()).ok());
  const Lsn end = store.journal->end();
  store.journal.reset();

  Result<std::unique_ptr<Journal>> again = Journal::Continue(store.io, kSmall, end, kEpoch + 1);
  REQUIRE(again.ok());
  store.journal = std::move(again).value();
  CHECK(store.journal->durable() == end);
  const uint64_t files = store.io.calls(SimCall::kCreate);
  CHECK(FillJournal(store).journal == 2);
  CHECK(store.io.calls(SimCall::kCreate) == files);  // the prepared file was taken over
  CHECK_FALSE(testing::ScanJournal(store.io, 1).scan.torn_tail);
}

TEST_CASE("a journal is not made over another one, nor continued below frames") {
  Store store;
  CHECK(Journal::Create(store.io, kSmall, 1, kEpoch).code() == Code::kExists);
  CHECK(Journal::Continue(store.io, kSmall, {1, 3}, kEpoch).code() == Code::kInvalidArgument);
  CHECK(Journal::Continue(store.io, kSmall, {9, 0}, kEpoch).code() == Code::kNotFound);
  FillJournal(store);
  const Lsn full = store.journal->FullJournals()[0];
  CHECK(Journal::Continue(store.io, kSmall, full, kEpoch + 1).code() == Code::kExists);
}

}  // namespace memoirfs::journal
