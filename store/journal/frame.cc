#include "store/journal/frame.h"

#include "store/base/coding.h"

namespace memoirfs::journal {
namespace {

constexpr size_t kCheckedBytes = FrameHeader::kSize - sizeof(uint32_t);

bool IsKnown(FrameType type) { return type >= FrameType::kBlob && type <= FrameType::kErased; }

Status NoHeader(std::string_view why) {
  return Status(Code::kCorrupt, "not a frame header: " + std::string(why));
}

}  // namespace

Bytes FrameHeader::Encode() const {
  Encoder out;
  out.Raw(kMagic).U8(static_cast<uint8_t>(type)).U32(length).U32(payload_crc);
  out.U64(pack).U64(epoch).U64(offset).U64(durable_upto.journal).U64(durable_upto.offset);
  out.U32(Crc32c(out.bytes()));
  return out.Take();
}

Result<FrameHeader> FrameHeader::Decode(ByteView raw) {
  if (raw.size() < kSize) return NoHeader("too short");
  if (!raw.starts_with(kMagic)) return NoHeader("wrong magic");
  Decoder in(raw.substr(kMagic.size(), kSize - kMagic.size()));
  FrameHeader header;
  header.type = static_cast<FrameType>(in.U8());
  header.length = in.U32();
  header.payload_crc = in.U32();
  header.pack = in.U64();
  header.epoch = in.U64();
  header.offset = in.U64();
  header.durable_upto.journal = in.U64();
  header.durable_upto.offset = in.U64();
  if (in.U32() != Crc32c(raw.substr(0, kCheckedBytes))) return NoHeader("wrong checksum");
  if (!IsKnown(header.type)) return NoHeader("unknown type");
  if (header.length > kMaxPayload) return NoHeader("payload too long");
  return header;
}

uint64_t FrameHeader::Footprint() const { return AlignFrame(kSize + uint64_t{length}); }

NewFrame BlobFrame(const Digest& digest, ByteView bytes) {
  return {FrameType::kBlob, Bytes(digest.View()), bytes};
}

NewFrame ExtendFrame(const Digest& whole, const Digest& base, ByteView suffix) {
  return {FrameType::kExtend, Encoder().Hash(whole).Hash(base).Take(), suffix};
}

}  // namespace memoirfs::journal
