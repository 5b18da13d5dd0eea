#include <catch2/catch.hpp>

#include "store/journal/pack.h"
#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

using testing::SimCall;
using testing::SimIo;

constexpr PackId kBulk{4, true};
const char kStaged[] = "staging/00000000000000000004.bulk";

struct Store {
  SimIo io;
  std::unique_ptr<BulkWriter> writer;

  Store() {
    testing::MakeFrameDirectories(io);
    Result<std::unique_ptr<BulkWriter>> made = CreateBulkPack(io, kBulk.number, 9);
    REQUIRE(made.ok());
    writer = std::move(made).value();
  }

  Result<Location> Append(ByteView bytes) { return writer->Append(Sha256::Of(bytes), bytes); }
};

}  // namespace

TEST_CASE("the chunks of a bulk pack are readable at once and after it is finished") {
  Store store;
  PackReader early(store.io);
  const Result<Location> first = store.Append("first");
  REQUIRE(first.ok());
  CHECK(first->pack == kBulk);
  CHECK(early.ReadPayload(*first)->substr(Digest::kSize) == "first");
  const Result<Location> second = store.Append("second");
  REQUIRE(second.ok());
  CHECK(store.writer->bytes_written() > second->offset);
  REQUIRE(store.writer->Finish().ok());
  CHECK(early.ReadPayload(*first)->substr(Digest::kSize) == "first");
  CHECK(PackReader(store.io).ReadPayload(*second)->substr(Digest::kSize) == "second");
  CHECK(VerifyPack(store.io, kBulk).value().empty());
  const Result<PackContents> contents = ReadPackContents(store.io, kBulk, nullptr);
  REQUIRE(contents.ok());
  CHECK(contents->objects.size() == 2);
  CHECK_FALSE(store.io.Stat(kStaged).ok());
}

TEST_CASE("a finished bulk pack survives every power cut") {
  Store store;
  REQUIRE(store.Append(Bytes(3000, 'x')).ok());
  REQUIRE(store.writer->Finish().ok());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const std::unique_ptr<SimIo> left = store.io.AfterPowerCut(seed);
    CHECK(VerifyPack(*left, kBulk).value().empty());
    CHECK_FALSE(left->Stat(kStaged).ok());
  }
}

TEST_CASE("an unfinished bulk pack is removed") {
  Store store;
  REQUIRE(store.Append("x").ok());
  store.writer.reset();
  CHECK(store.io.List("staging")->empty());
  CHECK(store.io.List("packs")->empty());
}

TEST_CASE("a bulk pack never has more than 32 MiB unsynced") {
  Store store;
  const Bytes chunk(1 << 20, 'c');
  for (int i = 0; i < 31; ++i) REQUIRE(store.Append(chunk).ok());
  CHECK(store.io.calls(SimCall::kDataSync) == 0);
  REQUIRE(store.Append(chunk).ok());
  CHECK(store.io.calls(SimCall::kDataSync) == 1);
}

TEST_CASE("a bulk pack is never finished after a failure") {
  Store store;
  REQUIRE(store.Append("a").ok());
  SECTION("of a write") {
    store.io.FailAt(1, EIO, SimCall::kWrite);
    CHECK(store.Append("b").code() == Code::kIo);
  }
  SECTION("of its sync") {
    store.io.FailAt(1, EIO, SimCall::kSync);
    CHECK(store.writer->Finish().code() == Code::kIo);
  }
  SECTION("of the directory's sync") {
    store.io.FailAt(1, EIO, SimCall::kSyncDirectory);
    CHECK(store.writer->Finish().code() == Code::kIo);
  }
  CHECK(store.writer->failed());
  CHECK_FALSE(store.Append("c").ok());
  CHECK_FALSE(store.writer->Finish().ok());
  store.writer.reset();
  CHECK(store.io.List("staging")->empty());
  CHECK(store.io.List("packs")->empty());
}

TEST_CASE("a bulk pack goes on after a shortage") {
  Store store;
  REQUIRE(store.Append("a").ok());
  store.io.ShortWriteAt(1, ENOSPC);
  CHECK(store.Append(Bytes(5000, 'b')).code() == Code::kNoSpace);
  CHECK_FALSE(store.writer->failed());
  REQUIRE(store.Append("c").ok());
  REQUIRE(store.writer->Finish().ok());
  CHECK(VerifyPack(store.io, kBulk).value().empty());
  CHECK(ReadPackContents(store.io, kBulk, nullptr)->objects.size() == 2);
}

TEST_CASE("a bulk pack does not take a number that is in use") {
  Store store;
  CHECK(CreateBulkPack(store.io, kBulk.number, 9).code() == Code::kExists);
}

TEST_CASE("every flipped byte of a bulk pack is reported") {
  Store store;
  REQUIRE(store.Append("one").ok());
  REQUIRE(store.Append("two").ok());
  REQUIRE(store.writer->Finish().ok());
  const std::string path = PackPath(kBulk);
  const Bytes whole = ReadWholeFile(store.io, path).value();
  for (uint64_t offset = 0; offset < whole.size(); ++offset) {
    INFO("offset " << offset);
    REQUIRE(store.io.Overwrite(path, offset, Bytes(1, static_cast<char>(whole[offset] ^ 1))));
    CHECK_FALSE(VerifyPack(store.io, kBulk).value().empty());
    REQUIRE(store.io.Overwrite(path, offset, whole.substr(offset, 1)));
  }
}

}  // namespace memoirfs::journal
