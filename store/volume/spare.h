#pragma once

// What is kept back on the disk below for the time when it is full: closing and opening the store
// and removing files must work then, and all of them write. It is kept as a file of zeros and some
// empty ones, which are given back when the disk is nearly full and made again when there is room.
// Not thread-safe: the holder of the checkpoint mutex calls KeepSpare.

#include <cstdint>
#include <string>

#include "store/base/file_io.h"
#include "store/base/status.h"

namespace memoirfs::volume {

inline constexpr char kSpareFile[] = "SPARE";
inline constexpr uint64_t kSpareBytes = 16U << 20;
inline constexpr uint64_t kSpareInodes = 16;

// Of a name in staging/: what is kept there is not left over.
bool IsSpare(const std::string& name);

// Keeps or gives back, as the disk is. Failures are logged: without anything spare the store works
// as well, until the disk is full.
void KeepSpare(FileIo& io);

// Gives back what is spare. For who met a quota, which the disk's free space does not show.
void GiveSpareBack(FileIo& io);

// kNoSpace where a new file, or `bytes` more in an old one, would take from what is spare.
Status CheckRoom(FileIo& io, uint64_t bytes);

}  // namespace memoirfs::volume
