// What an opening after a clean stop reads, and what it must not overlook.

#include "store/journal/clean_stop.h"
#include "store/volume/volume_impl.h"
#include "tests/unit/store/volume/sim_store.h"

namespace memoirfs::testing {
namespace {

volume::VolumeOptions WithJournalsOf(uint64_t bytes) {
  volume::VolumeOptions options = CrashOptions();
  options.journal.file_size = bytes;
  return options;
}

uint64_t ReadsOfOpening(uint64_t journal_bytes) {
  SimStore ada(WithJournalsOf(journal_bytes));
  ada.Save("ada/a", "text");
  ada.store.Close();
  const uint64_t reads = ada.io.calls(SimCall::kRead);
  REQUIRE(ada.store.Open().ok());
  return ada.io.calls(SimCall::kRead) - reads;
}

}  // namespace

TEST_CASE("an opening after a clean stop reads no more of a longer journal") {
  CHECK(ReadsOfOpening(64 << 20) == ReadsOfOpening(1 << 20));
}

TEST_CASE("the note of a clean stop is gone before anything is appended") {
  SimStore ada;
  ada.Save("ada/a", "text");
  ada.store.Close();
  REQUIRE(journal::ReadCleanStop(ada.io)->has_value());
  REQUIRE(ada.store.Open().ok());
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    CHECK_FALSE(journal::ReadCleanStop(*ada.io.AfterPowerCut(seed))->has_value());
  }
}

// As a program would leave it that does not know the note.
TEST_CASE("a note of a clean stop that others appended behind is not believed") {
  const bool damaged_mark = GENERATE(false, true);
  SimStore ada;
  ada.Save("ada/a", "text");
  ada.store.Close();
  const auto note = journal::ReadCleanStop(ada.io).value().value();
  REQUIRE(ada.store.Open().ok());
  ada.Save("ada/b", "acknowledged");
  REQUIRE(ada.store->Sync().ok());
  ada.Save("ada/c", "so that the sync is known");
  const auto left = ada.io.AfterKill();
  REQUIRE(journal::WriteCleanStop(*left, note).ok());
  if (damaged_mark) {
    const std::string path = journal::JournalPath(note.end.journal);
    REQUIRE(left->Overwrite(path, note.end.offset, Bytes(journal::FrameHeader::kSize, '\0')));
  }
  LivingStore store(*left);
  REQUIRE(store.Open().ok());
  CHECK(store.ReadTree()->count("ada/b") == 1);
}

TEST_CASE("a store without the note of its clean stop opens as well") {
  SimStore ada;
  ada.Save("ada/a", "text");
  ada.store.Close();
  SECTION("it is missing") { REQUIRE(ada.io.Remove("journal/CLEAN").ok()); }
  SECTION("it is damaged") { REQUIRE(ada.io.Overwrite("journal/CLEAN", 20, "x")); }
  const uint64_t journals = ada.io.List("journal")->size();
  REQUIRE(ada.store.Open().ok());
  CHECK(ada.store.ReadTree()->count("ada/a") == 1);
  CHECK(ada.io.List("packs")->empty());  // it went on in its journal
  CHECK(journals >= 1);
}

}  // namespace memoirfs::testing
