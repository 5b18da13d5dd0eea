#include "tests/support/journal_files.h"

#include <stdexcept>

#include "store/base/coding.h"

namespace memoirfs::testing {
namespace {

void Must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

}  // namespace

void MakeFrameDirectories(FileIo& io) {
  for (const char* name : {"journal", "packs", "staging", "quarantine"}) {
    Must(io.MakeDirectory(name));
  }
  Must(io.SyncDirectory("."));
}

journal::NewFrame TestBlob(ByteView bytes) {
  return {journal::FrameType::kBlob, Encoder().Hash(Sha256::Of(bytes)).Raw(bytes).Take(), {}};
}

journal::NewFrame TestRecord(uint32_t stream, uint64_t seq, ByteView line) {
  return {journal::FrameType::kRecord, Encoder().U32(stream).U64(seq).Raw(line).Take(), {}};
}

journal::NewFrame TestState(ByteView key, ByteView value) {
  return {journal::FrameType::kState, Encoder().String(key).Raw(value).Take(), {}};
}

FramesOfFile ScanFile(FileIo& io, const std::string& path, journal::PackId pack,
                      const journal::ScanBounds& bounds) {
  Result<std::unique_ptr<File>> file = io.Open(path, OpenMode::kRead);
  Must(file.status());
  FramesOfFile found;
  const auto keep = [&](const journal::FrameHeader& header, const journal::Location& where,
                        ByteView payload) {
    found.frames.push_back({header, where, Bytes(payload)});
    return Status();
  };
  Result<journal::ScanResult> scan = journal::ScanFrames(**file, pack, 0, keep, bounds);
  Must(scan.status());
  found.scan = std::move(scan).value();
  return found;
}

FramesOfFile ScanJournal(FileIo& io, uint64_t number, const journal::ScanBounds& bounds) {
  return ScanFile(io, journal::JournalPath(number), {number}, bounds);
}

}  // namespace memoirfs::testing
