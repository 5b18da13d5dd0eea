#pragma once

// What writing and reading segments share: their names, their lines, and what a line says of
// itself. Private to store/chain.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/file_io.h"
#include "store/chain/record.h"

namespace memoirfs::chain {

std::string SegmentPath(StreamId stream, uint64_t number);

// The numbers of a stream's segments: 1, 2, 3, … Empty when there is no chain; kCorrupt when one is
// missing.
Result<std::vector<uint64_t>> ListSegments(FileIo& io, StreamId stream);

// What a line declares of itself, its hash unchecked. kCorrupt when it is not a record of ours.
Result<Head> DeclaredHead(std::string_view line);

// Reads a segment's lines from its start.
class LineReader {
 public:
  static Result<LineReader> Open(FileIo& io, const std::string& path);

  // The next line that is complete, without '\n', valid until the next call; false at the end.
  // kCorrupt when it is longer than a record can be.
  Result<bool> Next(std::string_view* line);
  // At the end: what is behind the last '\n'.
  std::string_view unfinished() const { return std::string_view(buffer_).substr(start_); }

 private:
  LineReader(std::unique_ptr<File> file, std::string path);

  std::unique_ptr<File> file_;
  std::string path_;
  Bytes buffer_;
  size_t start_ = 0;     // of the next line, in buffer_
  uint64_t offset_ = 0;  // of what follows buffer_, in the file
};

}  // namespace memoirfs::chain
