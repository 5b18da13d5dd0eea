#include "store/journal/footer.h"
#include "store/journal/frame_group.h"
#include "store/journal/pack.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

struct Erasure {
  FrameHeader header;
  Location where;
};

Result<std::vector<Erasure>> Choose(File& file, PackId pack, uint64_t frames_end,
                                    const FrameChooser& erases) {
  std::vector<Erasure> chosen;
  const auto visit = [&](const FrameHeader& header, const Location& where, ByteView payload) {
    if (header.type != FrameType::kErased && erases(where, payload)) {
      chosen.push_back({header, where});
    }
    return Status();
  };
  TRY(ScanFrames(file, pack, 0, visit, {frames_end, PlaceIn(pack, frames_end)}));
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

}  // namespace

Result<uint64_t> EraseFrames(FileIo& io, PackId pack, const FrameChooser& erases) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(PackPath(pack), OpenMode::kRead));
  ASSIGN_OR_RETURN(const Footer footer, ReadFooter(*file, pack));
  ASSIGN_OR_RETURN(const auto chosen, Choose(*file, pack, footer.frames_end, erases));
  if (chosen.empty()) return uint64_t{0};
  const std::string temporary = PackPath(pack) + kTemporarySuffix;
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> copy, io.Open(temporary, OpenMode::kOpenOrCreate));
    TRY(copy->Truncate(0));
    TRY(CopyStart(*file, *copy, footer.frames_end));
    for (const Erasure& erasure : chosen) TRY(WriteErased(*copy, erasure));
    ASSIGN_OR_RETURN(PackContents contents, CollectContents(*copy, pack, footer.frames_end));
    TRY(WriteFooter(*copy, pack, footer.frames_end, std::move(contents)));
  }
  TRY(io.Rename(temporary, PackPath(pack)));
  TRY(io.SyncDirectory(kPackDirectory));
  return static_cast<uint64_t>(chosen.size());
}

}  // namespace memoirfs::journal
