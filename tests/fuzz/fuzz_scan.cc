// A file of frames: only frames that are whole are visited, in order, each within the file, and
// damage lies between them. No random bytes have the right checksums, so the same is tried with
// the checksums of all that looks like a frame put right.

#include <algorithm>

#include "store/base/coding.h"
#include "store/journal/scan.h"
#include "tests/fuzz/frame_file.h"

using namespace memoirfs;           // NOLINT: a test
using namespace memoirfs::journal;  // NOLINT: a test

namespace {

constexpr PackId kPack{3};

void CheckScan(ByteView bytes, const ScanBounds& bounds) {
  testing::SimIo io;
  const auto file = testing::FileOf(io, bytes);
  uint64_t end = 0;
  const auto visit = [&](const FrameHeader& header, const Location& where, ByteView payload) {
    EXPECT(where.offset >= end);
    EXPECT(where.offset == header.offset && where.length == payload.size());
    EXPECT(where.offset + FrameHeader::kSize + payload.size() <= bytes.size());
    EXPECT(Crc32c(payload) == header.payload_crc);
    end = where.offset + header.Footprint();
    return Status();
  };
  const Result<ScanResult> scan = ScanFrames(*file, kPack, 0, visit, bounds);
  EXPECT(scan.ok());
  EXPECT(scan->good_end >= end);
  for (const Damage& damage : scan->damage) {
    EXPECT(damage.length > 0 && damage.offset + damage.length <= scan->good_end);
  }
}

// Checksums, file and place of every header in `bytes` are made right; lengths stay.
Bytes Mended(ByteView bytes) {
  constexpr size_t kLengthAt = 4;
  Bytes mended(bytes);
  for (size_t at = 0; at + FrameHeader::kSize <= mended.size(); at += FrameHeader::kAlignment) {
    const ByteView rest = ByteView(mended).substr(at);
    if (!rest.starts_with(FrameHeader::kMagic)) continue;
    FrameHeader header;
    header.type = static_cast<FrameType>(rest[FrameHeader::kMagic.size()]);
    Decoder in(rest.substr(kLengthAt, FrameHeader::kSize - kLengthAt));
    header.length = in.U32();
    in.U32();
    in.U64();
    header.epoch = in.U64();
    in.U64();
    header.durable_upto = {in.U64(), in.U64()};
    header.pack = kPack.Encode();
    header.offset = at;
    header.payload_crc = Crc32c(rest.substr(FrameHeader::kSize, header.length));
    mended.replace(at, FrameHeader::kSize, header.Encode());
  }
  return mended;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteView bytes(reinterpret_cast<const char*>(data), size);
  for (const Bytes& input : {Bytes(bytes), Mended(bytes)}) {
    CheckScan(input, {});
    CheckScan(input, {AlignFrame(size / 2), PlaceIn(kPack, size / 2)});
  }
  return 0;
}
