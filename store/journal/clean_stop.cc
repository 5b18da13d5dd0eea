#include "store/journal/clean_stop.h"

#include <string>

#include "store/base/coding.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

constexpr ByteView kMagic{"\xF7MFSTOP\n", 8};

std::string NotePath() { return std::string(kJournalDirectory) + "/CLEAN"; }

}  // namespace

Status WriteCleanStop(FileIo& io, const CleanStop& stop) {
  Encoder out;
  out.Raw(kMagic).U64(stop.end.journal).U64(stop.end.offset).U64(stop.epoch);
  out.U32(Crc32c(out.bytes()));
  return WriteFileAtomically(io, NotePath(), out.bytes());
}

Result<std::optional<CleanStop>> ReadCleanStop(FileIo& io) {
  const Result<Bytes> note = ReadWholeFile(io, NotePath());
  if (note.code() == Code::kNotFound) return std::optional<CleanStop>();
  TRY(note);
  Decoder in(*note);
  const bool known = in.Raw(kMagic.size()) == kMagic;
  CleanStop stop;
  stop.end.journal = in.U64();
  stop.end.offset = in.U64();
  stop.epoch = in.U64();
  const uint32_t checksum = in.U32();
  if (!known || !in.Done()) return std::optional<CleanStop>();
  const bool intact =
      checksum == Crc32c(ByteView(*note).substr(0, note->size() - sizeof(checksum)));
  return intact ? std::optional<CleanStop>(stop) : std::nullopt;
}

Status ClearCleanStop(FileIo& io) {
  const Status removed = io.Remove(NotePath());
  if (removed.code() == Code::kNotFound) return {};
  TRY(removed);
  return io.SyncDirectory(kJournalDirectory);
}

}  // namespace memoirfs::journal
