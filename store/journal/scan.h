#pragma once

// Reading a file of frames from a point on, and telling a torn tail from damage.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "store/base/file_io.h"
#include "store/journal/frame.h"

namespace memoirfs::journal {

// Bytes between good frames that should have been frames and are not.
struct Damage {
  uint64_t offset = 0;
  uint64_t length = 0;
  // What the header said, where the header was still readable (a bad payload behind it).
  bool header_valid = false;
  FrameHeader header;
};

struct ScanResult {
  uint64_t good_end = 0;       // behind the last frame that counts
  uint64_t last_epoch = 0;     // of that frame; 0 when there was none
  Lsn durable_upto;            // the greatest that any counted frame carried
  std::vector<Damage> damage;  // acknowledged bytes that are bad: a later valid frame of the same
                               // epoch says that they were durable
  // Bytes that are not zero lie behind good_end, and are not the footer of a sealing that was
  // interrupted.
  bool torn_tail = false;
  uint64_t tail_end = 0;  // behind the last byte that is not zero
};

// Visits every counted frame in order; `payload` is valid during the call only. A failure of the
// visitor ends the scan with it.
using FrameVisitor =
    std::function<Status(const FrameHeader& header, const Location& where, ByteView payload)>;

// What the caller knows of the file beyond its bytes.
struct ScanBounds {
  // Frames end here at the latest: a footer follows.
  uint64_t end = std::numeric_limits<uint64_t>::max();
  // Everything before it was synced (PlaceIn of a pack; a later journal says so for an earlier
  // one): a gap before it is damage without further evidence.
  Lsn durable;
};

// Scans the frames of `file`, which is `pack`, from `from` (a frame's start) to the end. Frames
// behind a gap count only when the gap is damage; otherwise the scan stops there: a torn tail.
//
// A file whose last frames are damaged looks torn from within. ReplayJournals (store/journal/
// replay.h) scans journals together, so that later ones tell what was durable in earlier ones.
Result<ScanResult> ScanFrames(File& file, PackId pack, uint64_t from, const FrameVisitor& visit,
                              const ScanBounds& bounds = {});

}  // namespace memoirfs::journal
