#pragma once

// Journal files as files: making one, full of zeros, and opening one.

#include <cstdint>
#include <memory>
#include <optional>

#include "store/base/file_io.h"
#include "store/base/status.h"

namespace memoirfs::journal {

struct JournalFile {
  uint64_t number = 0;
  uint64_t size = 0;           // bytes, all allocated
  std::shared_ptr<File> file;  // shared with a barrier that is under way
};

// Made under a temporary name, zeros written and synced, renamed, directory synced: a file with a
// journal's name is whole. Replaces an empty file of that number. kNoSpace before anything is
// written when the file system has not the room.
Result<JournalFile> MakeJournalFile(FileIo& io, uint64_t number, uint64_t size);

// kNotFound when there is none.
Result<JournalFile> OpenJournalFile(FileIo& io, uint64_t number);

// A file of this number that was prepared and never used; nullopt when there is none that fits.
// kExists when there is one that holds frames: it must be recovered first.
Result<std::optional<JournalFile>> AdoptPreparedFile(FileIo& io, uint64_t number, uint64_t size);

}  // namespace memoirfs::journal
