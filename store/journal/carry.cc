#include <algorithm>

#include "store/journal/footer.h"
#include "store/journal/journal.h"
#include "store/journal/pack.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

// What lies behind the good frames, without the zeros at its end. A footer that a sealing had begun
// is nobody's data.
Result<Bytes> ReadTail(const File& log, uint64_t good_end) {
  ASSIGN_OR_RETURN(const uint64_t size, log.Size());
  if (size <= good_end) return Bytes();
  ASSIGN_OR_RETURN(Bytes tail, log.ReadAt(good_end, size - good_end));
  tail.resize(tail.find_last_not_of('\0') + 1);
  if (tail.starts_with(kFooterMagic)) tail.clear();
  return tail;
}

Status KeepTail(FileIo& io, const File& log, uint64_t number, uint64_t good_end) {
  ASSIGN_OR_RETURN(const Bytes tail, ReadTail(log, good_end));
  if (tail.empty()) return {};
  // By its digest as well: no tail is ever written over another.
  const std::string suffix = "-" + Sha256::Of(tail).ToHex().substr(0, 16) + ".tail";
  const std::string path = NumberedPath(kQuarantineDirectory, number, suffix.c_str());
  return WriteFileAtomically(io, path, tail);
}

Status MakePack(FileIo& io, const File& log, PackId pack, uint64_t good_end) {
  const std::string temporary = PackPath(pack) + kTemporarySuffix;
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, CreateAnew(io, temporary));
    TRY(CopyStart(log, *file, good_end));
    ASSIGN_OR_RETURN(PackContents contents, CollectContents(*file, pack, good_end));
    TRY(WriteFooter(*file, pack, good_end, std::move(contents)));
  }
  TRY(io.Rename(temporary, PackPath(pack)));
  return io.SyncDirectory(kPackDirectory);
}

// A full disk has no room for a copy: the log itself becomes the pack, as when it is sealed. Its
// torn tail, which nobody was told of as saved, is given up with it. The frames are written once
// more where they are: after a sync that failed they may be in the page cache alone, as clean pages
// that no other sync would write.
Status BecomePack(FileIo& io, uint64_t number, uint64_t good_end) {
  const std::string temporary = PackPath(PackId{number}) + kTemporarySuffix;
  if (io.Stat(temporary).ok()) TRY(io.Remove(temporary));
  ASSIGN_OR_RETURN(const std::unique_ptr<File> log,
                   io.Open(JournalPath(number), OpenMode::kReadWrite));
  TRY(CopyStart(*log, *log, good_end));
  TRY(log->Sync());
  return SealInPlace(io, *log, number, good_end);
}

Status Carry(FileIo& io, uint64_t number, uint64_t good_end) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> log, io.Open(JournalPath(number), OpenMode::kRead));
  const Status kept = KeepTail(io, *log, number, good_end);
  if (!kept.ok() && !IsFull(kept.code())) return kept;
  if (good_end > 0) {
    const Status made = MakePack(io, *log, PackId{number}, good_end);
    if (IsFull(made.code())) return BecomePack(io, number, good_end);
    TRY(made);
  }
  TRY(io.Remove(JournalPath(number)));
  return io.SyncDirectory(kJournalDirectory);
}

}  // namespace

Status CarryIntoPack(FileIo& io, uint64_t number, uint64_t good_end) {
  return Carry(io, number, good_end).WithContext("carry " + JournalPath(number) + " into a pack");
}

}  // namespace memoirfs::journal
