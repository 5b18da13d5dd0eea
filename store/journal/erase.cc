#include <algorithm>

#include "store/journal/footer.h"
#include "store/journal/frame_group.h"
#include "store/journal/pack.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

constexpr uint64_t kPiece = 1U << 20;

struct Erasure {
  FrameHeader header;
  Location where;
};

// What of a pack is to be written anew.
struct Erasures {
  uint64_t frames_end = 0;
  bool footer_damaged = false;
  std::vector<Erasure> frames;
  std::vector<ByteRange> damaged;  // bytes that are no frame's, and not zero

  bool empty() const { return !footer_damaged && frames.empty() && damaged.empty(); }
};

Result<bool> IsZero(const File& file, const ByteRange& range) {
  for (uint64_t done = 0; done < range.length; done += kPiece) {
    const uint64_t size = std::min(kPiece, range.length - done);
    ASSIGN_OR_RETURN(const Bytes piece, file.ReadAt(range.offset + done, size));
    if (piece.find_first_not_of('\0') != Bytes::npos) return false;
  }
  return true;
}

// Where the footer is damaged, the frames end behind the last good one: what may follow it is the
// footer, or nobody's.
Result<Erasures> Choose(File& file, PackId pack, const FrameChooser& erases) {
  const Result<PackContents> footer = ReadFooter(file, pack);
  if (!footer.ok() && footer.code() != Code::kCorrupt) return footer.status();
  ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  Erasures chosen;
  chosen.footer_damaged = !footer.ok();
  uint64_t last_end = 0;
  const auto visit = [&](const FrameHeader& header, const Location& where, ByteView payload) {
    last_end = where.offset + header.Footprint();
    if (header.type != FrameType::kErased && erases(where, payload)) {
      chosen.frames.push_back({header, where});
    }
    return Status();
  };
  const uint64_t end = footer.ok() ? footer->frames_end : size;
  ASSIGN_OR_RETURN(const ScanResult scan,
                   ScanFrames(file, pack, 0, visit, {end, PlaceIn(pack, end)}));
  chosen.frames_end = footer.ok() ? end : last_end;
  for (const Damage& damage : scan.damage) {
    if (damage.offset >= chosen.frames_end) continue;
    const ByteRange range{damage.offset, damage.length};
    ASSIGN_OR_RETURN(const bool zero, IsZero(file, range));
    if (!zero) chosen.damaged.push_back(range);
  }
  return chosen;
}

Status WriteErased(File& file, const Erasure& erasure) {
  const Bytes zeros(erasure.where.length, '\0');
  const NewFrame frame{FrameType::kErased, {}, zeros};
  ASSIGN_OR_RETURN(FrameGroup group, FrameGroup::Assemble({&frame, 1}));
  const FrameHeader& header = erasure.header;
  group.Place({erasure.where.pack, header.epoch, erasure.where.offset, header.durable_upto});
  return file.WriteAt(erasure.where.offset, group.buffer());
}

Status WriteZeros(File& file, const ByteRange& range) {
  for (uint64_t done = 0; done < range.length; done += kPiece) {
    const Bytes zeros(std::min(kPiece, range.length - done), '\0');
    TRY(file.WriteAt(range.offset + done, zeros));
  }
  return {};
}

Status WriteCopy(FileIo& io, const File& file, PackId pack, const std::string& path,
                 const Erasures& chosen) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> copy, CreateAnew(io, path));
  TRY(CopyStart(file, *copy, chosen.frames_end));
  for (const Erasure& erasure : chosen.frames) TRY(WriteErased(*copy, erasure));
  for (const ByteRange& range : chosen.damaged) TRY(WriteZeros(*copy, range));
  ASSIGN_OR_RETURN(PackContents contents, CollectContents(*copy, pack, chosen.frames_end));
  return WriteFooter(*copy, pack, chosen.frames_end, std::move(contents));
}

}  // namespace

Result<uint64_t> EraseFrames(FileIo& io, PackId pack, const FrameChooser& erases) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(PackPath(pack), OpenMode::kRead));
  ASSIGN_OR_RETURN(const Erasures chosen, Choose(*file, pack, erases));
  if (chosen.empty()) return uint64_t{0};
  const std::string temporary = PackPath(pack) + kTemporarySuffix;
  const Status written = WriteCopy(io, *file, pack, temporary, chosen);
  if (!written.ok()) {
    // A full disk needs the bytes back; what cannot be removed now is removed by the next opening.
    (void)io.Remove(temporary);
    return written;
  }
  TRY(io.Rename(temporary, PackPath(pack)));
  TRY(io.SyncDirectory(kPackDirectory));
  return static_cast<uint64_t>(chosen.frames.size());
}

}  // namespace memoirfs::journal
