#include "store/journal/footer.h"

#include <algorithm>

#include "store/base/coding.h"
#include "store/journal/journal.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

constexpr uint64_t kPiece = 4 << 20;

constexpr ByteView kTrailerMagic{"\xF7MFPACK\n", 8};
constexpr uint32_t kVersion = 1;
constexpr size_t kTrailerSize = 64;
constexpr size_t kTrailerChecked = kTrailerSize - sizeof(uint32_t) - kTrailerMagic.size();

struct Trailer {
  uint64_t frames_end = 0;
  uint64_t footer_size = 0;
  Digest footer_digest;
};

Status BadFooter(PackId pack, std::string_view why) {
  return Status(Code::kCorrupt, PackPath(pack) + ": footer: " + std::string(why));
}

Bytes EncodeBody(PackId pack, const PackContents& contents) {
  Encoder out;
  out.Raw(kFooterMagic).U64(pack.Encode());
  out.U64(contents.objects.size()).U64(contents.records.size());
  out.U64(contents.states.size()).U64(contents.damaged.size());
  for (const PackedObject& object : contents.objects) {
    out.Hash(object.digest).U64(object.location.offset).U32(object.location.length);
    out.U8(static_cast<uint8_t>(object.location.type));
  }
  for (const PackedRecord& record : contents.records) {
    out.U32(record.stream).U64(record.seq);
    out.U64(record.location.offset).U32(record.location.length);
  }
  for (const Location& state : contents.states) out.U64(state.offset).U32(state.length);
  for (const ByteRange& range : contents.damaged) out.U64(range.offset).U64(range.length);
  return out.Take();
}

Bytes EncodeTrailer(uint64_t frames_end, ByteView body) {
  Encoder out;
  out.U64(frames_end).U64(body.size()).Hash(Sha256::Of(body)).U32(kVersion);
  out.U32(Crc32c(out.bytes())).Raw(kTrailerMagic);
  return out.Take();
}

Result<Trailer> DecodeTrailer(PackId pack, ByteView raw, uint64_t file_size) {
  if (raw.size() != kTrailerSize) return BadFooter(pack, "the file is too short");
  Decoder in(raw);
  Trailer trailer;
  trailer.frames_end = in.U64();
  trailer.footer_size = in.U64();
  trailer.footer_digest = in.Hash();
  const uint32_t version = in.U32();
  const bool intact = in.U32() == Crc32c(raw.substr(0, kTrailerChecked));
  if (in.rest() != kTrailerMagic || !intact) return BadFooter(pack, "the trailer is damaged");
  if (version != kVersion) {
    return Status(Code::kUnknownFormat, PackPath(pack) + ": footer of version " +
                                            std::to_string(version) +
                                            ": open the store with a newer memoirfs");
  }
  const uint64_t before_trailer = file_size - kTrailerSize;
  if (trailer.footer_size > before_trailer ||
      trailer.frames_end != before_trailer - trailer.footer_size) {
    return BadFooter(pack, "the file does not have the size that the trailer says");
  }
  return trailer;
}

Result<PackContents> DecodeBody(PackId pack, ByteView body) {
  Decoder in(body);
  if (in.Raw(kFooterMagic.size()) != kFooterMagic || in.U64() != pack.Encode()) {
    return BadFooter(pack, "it belongs to another file");
  }
  const uint64_t objects = in.U64();
  const uint64_t records = in.U64();
  const uint64_t states = in.U64();
  const uint64_t damaged = in.U64();
  PackContents contents;
  for (uint64_t i = 0; i < objects && in.ok(); ++i) {
    PackedObject& object = contents.objects.emplace_back();
    object.digest = in.Hash();
    object.location = {pack, in.U64(), in.U32(), {}};
    object.location.type = static_cast<FrameType>(in.U8());
  }
  for (uint64_t i = 0; i < records && in.ok(); ++i) {
    PackedRecord& record = contents.records.emplace_back();
    record.stream = in.U32();
    record.seq = in.U64();
    record.location = {pack, in.U64(), in.U32(), FrameType::kRecord};
  }
  for (uint64_t i = 0; i < states && in.ok(); ++i) {
    contents.states.push_back({pack, in.U64(), in.U32(), FrameType::kState});
  }
  for (uint64_t i = 0; i < damaged && in.ok(); ++i) {
    contents.damaged.push_back({in.U64(), in.U64()});
  }
  if (!in.Done()) return BadFooter(pack, "its counts do not fit its size");
  return contents;
}

}  // namespace

void AddToContents(const Location& where, ByteView payload, PackContents& contents) {
  Decoder in(payload);
  switch (where.type) {
    case FrameType::kBlob:
    case FrameType::kExtend: {
      const Digest digest = in.Hash();
      if (where.type == FrameType::kExtend) in.Hash();
      if (in.ok()) contents.objects.push_back({digest, where});
      break;
    }
    case FrameType::kRecord: {
      const uint32_t stream = in.U32();
      const uint64_t seq = in.U64();
      if (in.ok()) contents.records.push_back({stream, seq, where});
      break;
    }
    case FrameType::kState:
      in.String();
      if (in.ok()) contents.states.push_back(where);
      break;
    case FrameType::kIntent:
    case FrameType::kMark:
    case FrameType::kCheckpoint:
    case FrameType::kErased:
      break;
  }
}

Status CopyStart(const File& from, File& to, uint64_t size) {
  for (uint64_t done = 0; done < size;) {
    ASSIGN_OR_RETURN(const Bytes piece, from.ReadAt(done, std::min(kPiece, size - done)));
    if (piece.empty()) {
      return Status(Code::kCorrupt, "the file ends at " + std::to_string(done) +
                                        ", before the frames do at " + std::to_string(size));
    }
    TRY(to.WriteAt(done, piece));
    done += piece.size();
  }
  return {};
}

Result<PackContents> CollectContents(File& file, PackId pack, uint64_t frames_end) {
  PackContents contents;
  contents.frames_end = frames_end;
  ASSIGN_OR_RETURN(const ScanResult scan,
                   ScanFrames(file, pack, 0,
                              [&](const FrameHeader&, const Location& where, ByteView payload) {
                                AddToContents(where, payload, contents);
                                return Status();
                              },
                              {frames_end, PlaceIn(pack, frames_end)}));
  for (const Damage& damage : scan.damage) {
    contents.damaged.push_back({damage.offset, damage.length});
  }
  std::sort(contents.objects.begin(), contents.objects.end());
  return contents;
}

Status WriteFooter(File& file, PackId pack, uint64_t frames_end, PackContents contents) {
  std::sort(contents.objects.begin(), contents.objects.end());
  const Bytes body = EncodeBody(pack, contents);
  const Bytes footer = body + EncodeTrailer(frames_end, body);
  TRY(file.WriteAt(frames_end, footer));
  TRY(file.Truncate(frames_end + footer.size()));
  return file.Sync();
}

Status SealInPlace(FileIo& io, File& log, uint64_t number, uint64_t frames_end) {
  const PackId pack{number};
  ASSIGN_OR_RETURN(PackContents contents, CollectContents(log, pack, frames_end));
  TRY(WriteFooter(log, pack, frames_end, std::move(contents)));
  TRY(io.Rename(JournalPath(number), PackPath(pack)));
  // The new name first: at no time is the file without a durable one. When that fails, whatever the
  // reason, nothing may sync the journals' directory any more: not to be tried again.
  Status named = io.SyncDirectory(kPackDirectory);
  if (named.ok()) named = io.SyncDirectory(kJournalDirectory);
  return named.ok() ? named : Status(Code::kIo, PackPath(pack) + ": its name: " + named.message());
}

Result<PackContents> ReadFooter(const File& file, PackId pack) {
  ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  const uint64_t trailer_at = size - std::min<uint64_t>(size, kTrailerSize);
  ASSIGN_OR_RETURN(const Bytes raw, file.ReadAt(trailer_at, kTrailerSize));
  ASSIGN_OR_RETURN(const Trailer trailer, DecodeTrailer(pack, raw, size));
  ASSIGN_OR_RETURN(const Bytes body, file.ReadAt(trailer.frames_end, trailer.footer_size));
  if (Sha256::Of(body) != trailer.footer_digest) {
    return BadFooter(pack, "its digest is not the one in the trailer");
  }
  ASSIGN_OR_RETURN(PackContents contents, DecodeBody(pack, body));
  contents.frames_end = trailer.frames_end;
  return contents;
}

}  // namespace memoirfs::journal
