#pragma once

// What tests of the journal and of what lies on it share.

#include <string>
#include <vector>

#include "store/journal/journal.h"
#include "store/journal/pack.h"
#include "tests/support/sim_io.h"

namespace memoirfs::testing {

// The directories of a store that hold frames, durable.
void MakeFrameDirectories(FileIo& io);

// Frames that own nothing but their head: the body is in the head.
journal::NewFrame TestBlob(ByteView bytes);
journal::NewFrame TestRecord(uint32_t stream, uint64_t seq, ByteView line);
journal::NewFrame TestState(ByteView key, ByteView value);

struct ReadFrame {
  journal::FrameHeader header;
  journal::Location where;
  Bytes payload;
};

struct FramesOfFile {
  journal::ScanResult scan;
  std::vector<ReadFrame> frames;
};

// A scan of the file at `path`, which is `pack`; throws std::runtime_error where it fails.
FramesOfFile ScanFile(FileIo& io, const std::string& path, journal::PackId pack,
                      const journal::ScanBounds& bounds = {});
FramesOfFile ScanJournal(FileIo& io, uint64_t number, const journal::ScanBounds& bounds = {});

}  // namespace memoirfs::testing
