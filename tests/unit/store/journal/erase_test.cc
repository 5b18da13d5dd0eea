// Erasing frames of a pack, also of one that is damaged.

#include <catch2/catch.hpp>

#include "store/base/coding.h"
#include "store/journal/pack.h"
#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

using testing::SimIo;
using testing::TestBlob;

constexpr PackId kPack{1};
constexpr uint64_t kTrailerSize = 64;

// A pack of three blobs.
struct Store {
  SimIo io;
  std::vector<Location> locations;

  Store() {
    testing::MakeFrameDirectories(io);
    const auto journal = std::move(Journal::Create(io, {8192, 512}, kPack.number, 5)).value();
    const std::vector<NewFrame> frames = {TestBlob("first"), TestBlob("marked for erasing"),
                                          TestBlob("third")};
    const Result<Appended> appended = journal->Append(frames);
    REQUIRE(appended.ok());
    locations = appended->locations;
    REQUIRE(journal->SyncTo(appended->end).ok());
    REQUIRE(CarryIntoPack(io, kPack.number, appended->end.offset).ok());
  }

  Bytes File(FileIo& disk) const { return ReadWholeFile(disk, PackPath(kPack)).value(); }
  void Flip(uint64_t offset) {
    const char flipped = static_cast<char>(File(io)[offset] ^ 0x10);
    REQUIRE(io.Overwrite(PackPath(kPack), offset, ByteView(&flipped, 1)));
  }
  uint64_t FooterStart() { return Decoder(ByteView(File(io)).substr(TrailerStart())).U64(); }
  uint64_t TrailerStart() { return File(io).size() - kTrailerSize; }

  Result<uint64_t> Erase() {
    return EraseFrames(io, kPack, [](const Location&, ByteView payload) {
      return payload.find("marked") != ByteView::npos;
    });
  }
  void CheckOthersAreWhole(FileIo& disk, const std::vector<size_t>& others) const {
    PackReader reader(disk);
    for (const size_t i : others) {
      const Bytes payload = reader.ReadPayload(locations[i]).value();
      CHECK(payload.substr(Digest::kSize) == (i == 0 ? "first" : "third"));
    }
    CHECK(ReadPackContents(disk, kPack, nullptr)->objects.size() == others.size());
    CHECK(VerifyPack(disk, kPack).value().empty());
  }
};

}  // namespace

TEST_CASE("an erased frame is zeros, and all others are where they were") {
  Store store;
  CHECK(store.Erase().value() == 1);
  CHECK(store.File(store.io).find("marked") == Bytes::npos);
  store.CheckOthersAreWhole(store.io, {0, 2});
  CHECK(store.Erase().value() == 0);
}

TEST_CASE("a pack with a damaged footer is scanned, erased and whole again") {
  Store store;
  const bool in_trailer = GENERATE(false, true);
  store.Flip(in_trailer ? store.TrailerStart() + 3 : store.FooterStart() + 20);
  const Result<uint64_t> erased = store.Erase();
  INFO(erased.status().ToString());
  CHECK(erased.ok());
  CHECK(store.File(store.io).find("marked") == Bytes::npos);
  store.CheckOthersAreWhole(store.io, {0, 2});
}

TEST_CASE("a damaged frame is erased whoever it belongs to, for nobody can tell") {
  Store store;
  const bool header = GENERATE(false, true);
  store.Flip(store.locations[1].offset + (header ? 5 : FrameHeader::kSize + 40));
  CHECK(store.Erase().value() == 0);
  CHECK(store.File(store.io).find("for erasing") == Bytes::npos);
  store.CheckOthersAreWhole(store.io, {0, 2});
}

TEST_CASE("a damaged last frame of a pack with a damaged footer is erased") {
  Store store;
  store.Flip(store.TrailerStart() + 3);
  store.Flip(store.locations[2].offset + 5);
  CHECK(store.Erase().ok());
  CHECK(store.File(store.io).find("third") == Bytes::npos);
  store.CheckOthersAreWhole(store.io, {0});
}

TEST_CASE("a pack with a footer of a later version is refused and left as it is") {
  Store store;
  const uint64_t trailer = store.TrailerStart();
  Bytes raw = store.File(store.io).substr(trailer, 48);
  raw += Encoder().U32(2).Take();
  raw += Encoder().U32(Crc32c(raw)).Take();
  REQUIRE(store.io.Overwrite(PackPath(kPack), trailer, raw));
  const Bytes before = store.File(store.io);
  const Result<uint64_t> erased = store.Erase();
  CHECK(erased.code() == Code::kUnknownFormat);
  CHECK(erased.status().message().find("footer of version 2") != std::string::npos);
  CHECK(store.File(store.io) == before);
}

TEST_CASE("erasing that is stopped at any call leaves the old pack or the new one") {
  for (uint64_t n = 1;; ++n) {
    Store store;
    store.io.CrashAt(n);
    const bool done = store.Erase().ok();
    const std::unique_ptr<SimIo> left = store.io.AfterPowerCut(n);
    INFO("call " << n);
    const bool erased = store.File(*left).find("marked") == Bytes::npos;
    CHECK((erased || !done));
    if (erased) {
      store.CheckOthersAreWhole(*left, {0, 2});
    } else {
      CHECK(VerifyPack(*left, kPack).value().empty());
    }
    if (done) break;
  }
}

}  // namespace memoirfs::journal
