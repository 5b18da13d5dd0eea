#include "store/journal/journal_file.h"

#include <algorithm>

#include "store/journal/frame.h"
#include "store/journal/journal.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

constexpr uint64_t kZerosAtOnce = 1 << 20;

// A quarter more than the file takes must be there: index and chains grow with what it holds.
Status CheckSpace(FileIo& io, uint64_t size) {
  ASSIGN_OR_RETURN(const SpaceFacts space, io.Space());
  const uint64_t needed = size + size / 4;
  if (space.available_blocks >= needed / std::max<uint64_t>(space.block_size, 1) + 1) return {};
  return Status(Code::kNoSpace, "no space left on the disk for a journal file of " +
                                    std::to_string(size) + " bytes");
}

Status FillWithZeros(File& file, uint64_t size) {
  const Bytes zeros(std::min(size, kZerosAtOnce), '\0');
  for (uint64_t done = 0; done < size; done += zeros.size()) {
    const uint64_t piece = std::min<uint64_t>(zeros.size(), size - done);
    TRY(file.WriteAt(done, ByteView(zeros).substr(0, piece)));
  }
  return file.Sync();
}

Status MakeUnderName(FileIo& io, const std::string& temporary, const std::string& path,
                     uint64_t size) {
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(temporary, OpenMode::kCreate));
    TRY(FillWithZeros(*file, size));
  }
  TRY(io.Rename(temporary, path));
  return io.SyncDirectory(kJournalDirectory);
}

Status RemoveIfThere(FileIo& io, const std::string& path) {
  Status status = io.Remove(path);
  return status.code() == Code::kNotFound ? Status() : status;
}

}  // namespace

Result<JournalFile> MakeJournalFile(FileIo& io, uint64_t number, uint64_t size) {
  const std::string path = JournalPath(number);
  const std::string temporary = path + kTemporarySuffix;
  TRY(RemoveIfThere(io, temporary));
  TRY(CheckSpace(io, size));
  const Status made = MakeUnderName(io, temporary, path, size);
  if (!made.ok()) {
    // A full disk needs the bytes back now. A failure here is met again at the next attempt.
    (void)io.Remove(temporary);
    return made.WithContext("make " + path);
  }
  return OpenJournalFile(io, number);
}

Result<JournalFile> OpenJournalFile(FileIo& io, uint64_t number) {
  ASSIGN_OR_RETURN(std::shared_ptr<File> file, io.Open(JournalPath(number), OpenMode::kReadWrite));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return JournalFile{number, size, std::move(file)};
}

Result<std::optional<JournalFile>> AdoptPreparedFile(FileIo& io, uint64_t number, uint64_t size) {
  Result<JournalFile> found = OpenJournalFile(io, number);
  if (found.code() == Code::kNotFound) return std::optional<JournalFile>();
  if (!found.ok()) return found.status();
  ASSIGN_OR_RETURN(const Bytes start, found->file->ReadAt(0, FrameHeader::kSize));
  if (start.find_first_not_of('\0') != Bytes::npos) {
    return Status(Code::kExists, JournalPath(number) + " holds frames: recover it first");
  }
  if (found->size != size) return std::optional<JournalFile>();
  return std::optional<JournalFile>(std::move(found).value());
}

}  // namespace memoirfs::journal
