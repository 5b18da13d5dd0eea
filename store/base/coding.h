#pragma once

// Binary encoding of frames, keys and rows: fixed-width big-endian integers (keys sort as numbers)
// and byte strings behind a 32-bit length. Decoding never reads past its input: after the first
// short read every getter returns zero values and ok() is false.

#include <cstdint>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/digest.h"

namespace memoirfs {

class Encoder {
 public:
  Encoder& U8(uint8_t v);
  Encoder& U16(uint16_t v);
  Encoder& U32(uint32_t v);
  Encoder& U64(uint64_t v);
  Encoder& I64(int64_t v) { return U64(static_cast<uint64_t>(v)); }
  Encoder& Raw(ByteView bytes);           // no length
  Encoder& String(ByteView bytes);        // 32-bit length, then the bytes
  Encoder& Hash(const Digest& digest);    // 32 raw bytes
  Encoder& Content(const ContentId& id);  // digest, size, kind: 41 bytes

  const Bytes& bytes() const { return out_; }
  Bytes Take() { return std::move(out_); }

 private:
  Bytes out_;
};

class Decoder {
 public:
  explicit Decoder(ByteView in) : in_(in) {}

  uint8_t U8();
  uint16_t U16();
  uint32_t U32();
  uint64_t U64();
  int64_t I64() { return static_cast<int64_t>(U64()); }
  ByteView Raw(size_t size);
  ByteView String();
  Digest Hash();
  ContentId Content();

  ByteView rest() const { return in_; }
  bool ok() const { return ok_; }
  // Nothing was missing and nothing is left.
  bool Done() const { return ok_ && in_.empty(); }

 private:
  template <typename T>
  T Fixed();

  ByteView in_;
  bool ok_ = true;
};

// CRC-32C (Castagnoli, RFC 3720 appendix B.4), by ISA-L.
uint32_t Crc32c(ByteView data);

}  // namespace memoirfs
