#pragma once

// A file in memory that holds a fuzz target's input.

#include <memory>

#include "tests/fuzz/expect.h"
#include "tests/support/sim_io.h"

namespace memoirfs::testing {

inline std::unique_ptr<File> FileOf(FileIo& io, ByteView bytes) {
  Result<std::unique_ptr<File>> file = io.Open("frames", OpenMode::kOpenOrCreate);
  EXPECT(file.ok());
  EXPECT((*file)->Truncate(0).ok());
  EXPECT((*file)->WriteAt(0, bytes).ok());
  return std::move(*file);
}

}  // namespace memoirfs::testing
