#include "store/volume/spare.h"

#include <string>

#include "store/base/log.h"
#include "store/journal/paths.h"

namespace memoirfs::volume {
namespace {

// What is spare is made only while so many times as much is there.
constexpr uint64_t kPlenty = 4;

constexpr char kInodePrefix[] = "spare-";

// In staging/, which each opening clears: it has them back before it makes files of its own.
std::string InodePath(uint64_t number) {
  return std::string(journal::kStagingDirectory) + "/" + kInodePrefix + std::to_string(number);
}

// Some file systems make inodes as they need them and say that there are none at all.
bool CountsInodes(const SpaceFacts& space) { return space.total_files != 0; }

uint64_t AvailableBytes(const SpaceFacts& space) {
  return space.available_blocks * space.block_size;
}

void TellUsed(const char* what) {
  Log(LogLevel::kWarn, "volume.disk-full",
      std::string("the disk is nearly full: the spare ") + what + " are used");
}

void TellNotMade(const Status& why) { Log(LogLevel::kWarn, "volume.spare", why.ToString()); }

void GiveBytesBack(FileIo& io) {
  if (io.Remove(kSpareFile).ok()) TellUsed("bytes");
}

void KeepBytes(FileIo& io, uint64_t available) {
  if (available < kSpareBytes) GiveBytesBack(io);
  if (available <= kPlenty * kSpareBytes || io.Stat(kSpareFile).ok()) return;
  const Status made = WriteFileAtomically(io, kSpareFile, Bytes(kSpareBytes, '\0'));
  if (!made.ok()) TellNotMade(made);
}

void GiveInodesBack(FileIo& io) {
  bool any = false;
  for (uint64_t number = 0; number < kSpareInodes; ++number) {
    any = io.Remove(InodePath(number)).ok() || any;
  }
  if (any) TellUsed("inodes");
}

void MakeInodes(FileIo& io) {
  for (uint64_t number = kSpareInodes; number-- > 0;) {
    const auto made = io.Open(InodePath(number), OpenMode::kCreate);
    if (!made.ok()) return TellNotMade(made.status());
  }
}

void KeepInodes(FileIo& io, uint64_t available) {
  if (available < kSpareInodes) return GiveInodesBack(io);
  // They come and go together; number 0 is made last.
  if (available > kPlenty * kSpareInodes && !io.Stat(InodePath(0)).ok()) MakeInodes(io);
}

}  // namespace

bool IsSpare(const std::string& name) { return name.starts_with(kInodePrefix); }

void KeepSpare(FileIo& io) {
  const auto space = io.Space();
  if (!space.ok()) return;
  KeepBytes(io, AvailableBytes(*space));
  if (CountsInodes(*space)) KeepInodes(io, space->available_files);
}

void GiveSpareBack(FileIo& io) {
  GiveBytesBack(io);
  GiveInodesBack(io);
}

Status CheckRoom(FileIo& io, uint64_t bytes) {
  ASSIGN_OR_RETURN(const SpaceFacts space, io.Space());
  if (AvailableBytes(space) < kSpareBytes + bytes) {
    return {Code::kNoSpace, "no space left on the disk for a part of a big file"};
  }
  if (CountsInodes(space) && space.available_files < kSpareInodes) {
    return {Code::kNoSpace, "no inodes left on the disk for a big file"};
  }
  return {};
}

}  // namespace memoirfs::volume
