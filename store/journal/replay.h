#pragma once

// Reading all journals that were not sealed, together: what recovery after an unclean stop sees.
//
// A journal alone cannot tell that its last frames were lost. The journal behind it can: its first
// frame says where the one before it ended, and its frames say how far that one was durable. So a
// missing end is damage when it was acknowledged, and otherwise the point where the sequence of
// frames ends: what later journals hold was never acknowledged either, and does not count, for it
// reached the disk without what was appended before it.

#include <cstdint>
#include <vector>

#include "store/base/file_io.h"
#include "store/base/status.h"
#include "store/journal/scan.h"

namespace memoirfs::journal {

struct JournalFinding {
  uint64_t number = 0;
  ScanResult scan;       // CarryIntoPack(number, scan.good_end) keeps what counts
  bool cut_off = false;  // an earlier journal lacks its end: nothing here counts, good_end is 0
};

// The numbers of the journals in journal/, rising.
Result<std::vector<uint64_t>> ListJournals(FileIo& io);

// Visits every frame that counts and lies at `from` or behind, in order. One finding a journal, the
// empty ones included. Changes nothing.
Result<std::vector<JournalFinding>> ReplayJournals(FileIo& io, Lsn from, const FrameVisitor& visit);

// Carries every journal found into a pack (CarryIntoPack), in an order that a crash in between
// cannot spoil: what is cut off goes first, newest first, for it would count were the journal
// before it gone; then the rest, oldest first, so that later journals testify as long as it
// matters. The next replay then finds what is left to do.
Status CarryJournals(FileIo& io, const std::vector<JournalFinding>& findings);

}  // namespace memoirfs::journal
