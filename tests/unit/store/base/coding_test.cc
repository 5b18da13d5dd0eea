#include "store/base/coding.h"

#include <catch2/catch.hpp>
#include <limits>

using memoirfs::Bytes;
using memoirfs::ContentId;
using memoirfs::ContentKind;
using memoirfs::Decoder;
using memoirfs::Encoder;
using memoirfs::Sha256;

TEST_CASE("integers are big-endian, so that keys sort as numbers") {
  CHECK(Encoder().U16(0x0102).U32(0x03040506).Take() == "\x01\x02\x03\x04\x05\x06");
  CHECK(Encoder().U64(255).bytes() < Encoder().U64(256).bytes());
  CHECK(Encoder().U64(256).bytes() < Encoder().U64(1ULL << 63).bytes());
}

TEST_CASE("what was encoded is decoded") {
  const ContentId content{Sha256::Of("x"), 1ULL << 40, ContentKind::kTree};
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Bytes bytes = Encoder()
                          .U8(255)
                          .U16(65535)
                          .U32(4294967295U)
                          .U64(1ULL << 63)
                          .I64(kLeast)
                          .String(std::string("a\0b", 3))
                          .Content(content)
                          .Raw("end")
                          .Take();
  Decoder in(bytes);
  CHECK(in.U8() == 255);
  CHECK(in.U16() == 65535);
  CHECK(in.U32() == 4294967295U);
  CHECK(in.U64() == 1ULL << 63);
  CHECK(in.I64() == kLeast);
  CHECK(in.String() == std::string("a\0b", 3));
  CHECK(in.Content() == content);
  CHECK_FALSE(in.Done());
  CHECK(in.Raw(3) == "end");
  CHECK(in.Done());
}

TEST_CASE("every prefix of an encoding is short, and reading stays within it") {
  const Bytes whole = Encoder().U32(1).String("abc").Content(ContentId{}).Take();
  for (size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    const Bytes prefix = whole.substr(0, size);  // its own allocation: a sanitizer sees an overrun
    Decoder in(prefix);
    in.U32();
    in.String();
    in.Content();
    CHECK_FALSE(in.ok());
  }
}

TEST_CASE("after a short read every getter gives zero values") {
  const Bytes bytes = Encoder().U16(7).Take();
  Decoder in(bytes);
  CHECK(in.U32() == 0);
  CHECK(in.U16() == 0);
  CHECK(in.String().empty());
  CHECK(in.Hash().IsZero());
  CHECK_FALSE(in.ok());
}

TEST_CASE("a length beyond the input is refused without an allocation") {
  const Bytes bytes = Encoder().U32(0xffffffff).Raw("abc").Take();
  Decoder in(bytes);
  CHECK(in.String().empty());
  CHECK_FALSE(in.ok());
}

TEST_CASE("a kind of content that does not exist is refused") {
  Bytes bytes = Encoder().Content(ContentId{}).Take();
  bytes.back() = 2;
  Decoder in(bytes);
  in.Content();
  CHECK_FALSE(in.Done());
}

TEST_CASE("CRC-32C gives the values of RFC 3720") {
  CHECK(memoirfs::Crc32c("") == 0);
  CHECK(memoirfs::Crc32c("123456789") == 0xe3069283);
  CHECK(memoirfs::Crc32c(Bytes(32, '\0')) == 0x8a9136aa);
  CHECK(memoirfs::Crc32c(Bytes(32, '\xff')) == 0x62a8ab43);
}
