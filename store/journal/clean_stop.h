#pragma once

// The note of a clean stop, journal/CLEAN: where the journal ended. Byte layout: store/FORMAT.md
// "Journal files".
//
// It is written when everything is durable, and is gone for good before anything more is appended:
// while it is there, nothing follows the end that it names. So the opening that finds it need not
// read what follows, which is up to a whole file of zeros.

#include <cstdint>
#include <optional>

#include "store/base/file_io.h"
#include "store/base/status.h"
#include "store/journal/frame.h"

namespace memoirfs::journal {

struct CleanStop {
  Lsn end;
  uint64_t epoch = 0;  // of the opening that stopped
};

Status WriteCleanStop(FileIo& io, const CleanStop& stop);
// nullopt when there is none, or none that is whole.
Result<std::optional<CleanStop>> ReadCleanStop(FileIo& io);
// Durable on return; does nothing where there is none.
Status ClearCleanStop(FileIo& io);

}  // namespace memoirfs::journal
