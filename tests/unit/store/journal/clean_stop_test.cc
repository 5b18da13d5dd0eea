#include "store/journal/clean_stop.h"

#include <catch2/catch.hpp>

#include "tests/support/journal_files.h"

namespace memoirfs::journal {

using testing::SimIo;

TEST_CASE("a note of a clean stop is read as it was written, and cleared for good") {
  SimIo io;
  testing::MakeFrameDirectories(io);
  CHECK_FALSE(ReadCleanStop(io)->has_value());
  REQUIRE(ClearCleanStop(io).ok());
  REQUIRE(WriteCleanStop(io, {{3, 4096}, 77}).ok());
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto note = ReadCleanStop(*io.AfterPowerCut(seed)).value();
    REQUIRE(note.has_value());
    CHECK(note->end == Lsn{3, 4096});
    CHECK(note->epoch == 77);
  }
  REQUIRE(ClearCleanStop(io).ok());
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CHECK_FALSE(ReadCleanStop(*io.AfterPowerCut(seed))->has_value());
  }
}

TEST_CASE("a note of a clean stop with any byte changed or missing says nothing") {
  SimIo io;
  testing::MakeFrameDirectories(io);
  REQUIRE(WriteCleanStop(io, {{3, 4096}, 77}).ok());
  const Bytes whole = ReadWholeFile(io, "journal/CLEAN").value();
  for (uint64_t at = 0; at < whole.size(); ++at) {
    INFO("byte " << at);
    REQUIRE(io.Overwrite("journal/CLEAN", at, Bytes(1, static_cast<char>(whole[at] ^ 1))));
    CHECK_FALSE(ReadCleanStop(io)->has_value());
    REQUIRE(WriteFileAtomically(io, "journal/CLEAN", whole.substr(0, at)).ok());
    CHECK_FALSE(ReadCleanStop(io)->has_value());
    REQUIRE(WriteFileAtomically(io, "journal/CLEAN", whole).ok());
  }
}

}  // namespace memoirfs::journal
