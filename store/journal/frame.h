#pragma once

// The frame: the unit of everything that the journal, packs and bulk packs hold.
// Byte layout: store/FORMAT.md "Frames".

#include <compare>
#include <cstdint>
#include <string>

#include "store/base/bytes.h"
#include "store/base/digest.h"
#include "store/base/status.h"

namespace memoirfs::journal {

enum class FrameType : uint8_t {
  kBlob = 1,        // digest (32), bytes
  kExtend = 2,      // digest of the whole (32), digest of the base (32), suffix
  kRecord = 3,      // stream (u32), seq (u64), the record's line without '\n'
  kState = 4,       // reserved: key (string), value (rest). Read and listed in footers, not written
  kIntent = 5,      // see store/volume/intent.h
  kMark = 6,        // carries durable_upto; a journal's first one also previous_end (u64)
  kCheckpoint = 7,  // see Checkpoint in store/volume
  kErased = 8,      // zeros, as long as what was erased on purpose
};

// A file of frames. Journals and the packs that they become share their numbers, so that a
// location outlives sealing; bulk packs are counted apart.
struct PackId {
  uint64_t number = 0;  // below 2^63
  bool bulk = false;

  uint64_t Encode() const { return number | (bulk ? uint64_t{1} << 63 : 0); }
  static PackId Decode(uint64_t encoded) {
    return {encoded & ~(uint64_t{1} << 63), (encoded >> 63) != 0};
  }
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const PackId&, const PackId&) = default;
};

// A point in the sequence of journals: everything before it was appended earlier.
struct Lsn {
  uint64_t journal = 0;
  uint64_t offset = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const Lsn&, const Lsn&) = default;
};

struct FrameHeader {
  static constexpr size_t kSize = 56;
  // What every header starts with; the first byte occurs in no UTF-8 text.
  static constexpr ByteView kMagic{"\xF7MF", 3};
  static constexpr uint64_t kAlignment = 8;  // frames start at multiples of it
  // The longest payload: a commit that may go into the journal, and room for its records.
  static constexpr uint32_t kMaxPayload = 8U << 20;

  FrameType type{};
  uint32_t length = 0;       // payload bytes, without padding
  uint32_t payload_crc = 0;  // CRC-32C of the payload
  uint64_t pack = 0;         // PackId::Encode() of the file it was written to
  uint64_t epoch = 0;        // of the opening of the store that wrote it
  uint64_t offset = 0;       // of this header in its file
  Lsn durable_upto;          // known to be synced when this was written

  // Header bytes, with a CRC-32C over them.
  Bytes Encode() const;
  // kCorrupt when it is not a valid header: size, magic, checksum, type, length.
  static Result<FrameHeader> Decode(ByteView raw);

  // Bytes that the frame takes in the file: header, payload, padding.
  uint64_t Footprint() const;
};

// Where a frame is: enough to read its payload in one read.
struct Location {
  PackId pack;
  uint64_t offset = 0;  // of the header
  uint32_t length = 0;  // of the payload
  FrameType type{};
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const Location&, const Location&) = default;
};

// A frame to append: the payload is `head` followed by `body`, so that a blob's bytes are not
// copied to stand behind their digest. Both must stay valid until the append returned.
struct NewFrame {
  FrameType type{};
  Bytes head;
  ByteView body;
};

// `offset` within `pack`, as the place that durable marks are compared with.
inline Lsn PlaceIn(PackId pack, uint64_t offset) { return {pack.Encode(), offset}; }

// The least multiple of FrameHeader::kAlignment that is not below `offset`.
constexpr uint64_t AlignFrame(uint64_t offset) {
  return (offset + FrameHeader::kAlignment - 1) & ~(FrameHeader::kAlignment - 1);
}

NewFrame BlobFrame(const Digest& digest, ByteView bytes);
NewFrame ExtendFrame(const Digest& whole, const Digest& base, ByteView suffix);

}  // namespace memoirfs::journal
