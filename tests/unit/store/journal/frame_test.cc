#include "store/journal/frame.h"

#include <catch2/catch.hpp>

#include "store/base/coding.h"
#include "store/journal/frame_group.h"
#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

FrameHeader SomeHeader() {
  FrameHeader header;
  header.type = FrameType::kRecord;
  header.length = 0x01020304 % FrameHeader::kMaxPayload;
  header.payload_crc = 0xa1b2c3d4;
  header.pack = 0x1122334455667788;
  header.epoch = 7;
  header.offset = 4096;
  header.durable_upto = {9, 128};
  return header;
}

}  // namespace

TEST_CASE("a frame header has the bytes that the format says") {
  const Bytes raw = SomeHeader().Encode();
  REQUIRE(raw.size() == FrameHeader::kSize);
  CHECK(raw.substr(0, 3) == Bytes("\xF7MF"));
  CHECK(raw[3] == 3);
  CHECK(raw.substr(12, 8) == Bytes("\x11\x22\x33\x44\x55\x66\x77\x88"));
  CHECK(raw.substr(52) == Encoder().U32(Crc32c(ByteView(raw).substr(0, 52))).bytes());
}

TEST_CASE("a frame header survives encoding") {
  const FrameHeader header = SomeHeader();
  const Result<FrameHeader> decoded = FrameHeader::Decode(header.Encode() + "rest");
  REQUIRE(decoded.ok());
  CHECK(decoded->type == header.type);
  CHECK(decoded->length == header.length);
  CHECK(decoded->payload_crc == header.payload_crc);
  CHECK(decoded->pack == header.pack);
  CHECK(decoded->epoch == header.epoch);
  CHECK(decoded->offset == header.offset);
  CHECK(decoded->durable_upto == header.durable_upto);
}

TEST_CASE("every flipped bit of a frame header is noticed") {
  const Bytes raw = SomeHeader().Encode();
  for (size_t bit = 0; bit < raw.size() * 8; ++bit) {
    Bytes flipped = raw;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    INFO("bit " << bit);
    CHECK(FrameHeader::Decode(flipped).code() == Code::kCorrupt);
  }
}

TEST_CASE("a header that is too short, of no known type or too long is refused") {
  CHECK_FALSE(FrameHeader::Decode("").ok());
  CHECK_FALSE(FrameHeader::Decode(SomeHeader().Encode().substr(0, 55)).ok());
  FrameHeader unknown = SomeHeader();
  unknown.type = static_cast<FrameType>(9);
  CHECK_FALSE(FrameHeader::Decode(unknown.Encode()).ok());
  unknown.type = static_cast<FrameType>(0);
  CHECK_FALSE(FrameHeader::Decode(unknown.Encode()).ok());
  FrameHeader longest = SomeHeader();
  longest.length = FrameHeader::kMaxPayload;
  CHECK(FrameHeader::Decode(longest.Encode()).ok());
  ++longest.length;
  CHECK_FALSE(FrameHeader::Decode(longest.Encode()).ok());
}

TEST_CASE("a pack id survives encoding, bulk or not") {
  for (const PackId id : {PackId{5, false}, PackId{5, true}, PackId{(1ULL << 63) - 1, true}}) {
    CHECK(PackId::Decode(id.Encode()) == id);
  }
}

TEST_CASE("a group puts frames one behind the other at multiples of eight") {
  const std::vector<NewFrame> frames = {BlobFrame(Sha256::Of("abc"), "abc"),
                                        {FrameType::kMark, {}, {}},
                                        ExtendFrame(Sha256::Of("abcd"), Sha256::Of("abc"), "d")};
  Result<FrameGroup> group = FrameGroup::Assemble(frames);
  REQUIRE(group.ok());
  const std::vector<Location> places = group->Place({PackId{3}, 1, 800, {3, 0}});
  REQUIRE(places.size() == 3);
  CHECK(places[0] == Location{PackId{3}, 800, 35, FrameType::kBlob});
  CHECK(places[1] == Location{PackId{3}, 800 + 96, 0, FrameType::kMark});
  CHECK(places[2] == Location{PackId{3}, 800 + 96 + 56, 65, FrameType::kExtend});
  CHECK(group->size() == 96 + 56 + 128);
  CHECK(group->buffer().substr(56 + 32, 8) == ByteView("abc\0\0\0\0\0", 8));
}

TEST_CASE("a group of no frames or with too long a payload is refused") {
  CHECK(FrameGroup::Assemble({}).code() == Code::kInvalidArgument);
  const Bytes too_long(FrameHeader::kMaxPayload + 1, 'x');
  const NewFrame frame{FrameType::kState, {}, too_long};
  CHECK(FrameGroup::Assemble({&frame, 1}).code() == Code::kInvalidArgument);
}

}  // namespace memoirfs::journal
