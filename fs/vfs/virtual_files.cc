#include "fs/vfs/virtual_files.h"

#include <algorithm>

#include "store/chain/segment.h"

namespace memoirfs::vfs {
namespace {

struct Segment {
  std::string path;
  uint64_t size = 0;
};

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Result<std::vector<Segment>> Segments(FileIo& io, StreamId stream) {
  const std::string directory = chain::ChainDirectory(stream);
  auto names = io.List(directory);
  if (names.code() == Code::kNotFound) return std::vector<Segment>();  // nothing durable yet
  TRY(names);
  std::vector<Segment> segments;
  for (const std::string& name : *names) {
    if (!EndsWith(name, ".jsonl")) continue;
    const std::string path = directory + "/" + name;
    ASSIGN_OR_RETURN(const FileFacts facts, io.Stat(path));
    segments.push_back({path, facts.size});
  }
  return segments;
}

}  // namespace

Result<uint64_t> ChainSize(FileIo& io, StreamId stream) {
  ASSIGN_OR_RETURN(const std::vector<Segment> segments, Segments(io, stream));
  uint64_t size = 0;
  for (const Segment& segment : segments) size += segment.size;
  return size;
}

Result<Bytes> ReadChain(FileIo& io, StreamId stream, uint64_t offset, size_t size) {
  ASSIGN_OR_RETURN(const std::vector<Segment> segments, Segments(io, stream));
  Bytes out;
  uint64_t start = 0;
  for (const Segment& segment : segments) {
    const uint64_t from = offset + out.size();
    if (out.size() < size && from >= start && from - start < segment.size) {
      ASSIGN_OR_RETURN(const auto file, io.Open(segment.path, OpenMode::kRead));
      const uint64_t count = std::min<uint64_t>(size - out.size(), segment.size - (from - start));
      ASSIGN_OR_RETURN(const Bytes bytes, file->ReadAt(from - start, count));
      out += bytes;
      if (bytes.size() < count) break;
    }
    start += segment.size;
  }
  return out;
}

}  // namespace memoirfs::vfs
