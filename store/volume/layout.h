#pragma once

// The store's directory: what lies where, and the FORMAT file that says which version it is.
// Byte layout: store/FORMAT.md "Store directory".

#include <string>

#include "store/base/file_io.h"
#include "store/base/status.h"

namespace memoirfs::volume {

inline constexpr char kIndexDirectory[] = "index";
// A file of this name asks the next opening to rebuild the index: because damage was met, or with
// this text in it because somebody asked for a repair.
inline constexpr char kRebuildMarker[] = "REBUILD";
inline constexpr char kRepairAskedFor[] = "repair";
inline constexpr char kTryAgain[] = "again";
inline constexpr char kPurgeFile[] = "PURGE";  // store/volume/purge_plan.h

struct StoreFormat {
  std::string store_id;  // UUID text
};

// kNotEmpty when the directory holds anything but what a store has.
Status CheckNothingForeign(FileIo& io);

// Creates FORMAT and the directories, in a directory that is empty or holds no more than an
// interrupted call left. Otherwise kNotEmpty, or kCorrupt where it holds a store without FORMAT.
Status CreateLayout(FileIo& io);

// kCorrupt where something else is in place of a directory of a store, or one is missing that may
// have held content. PrepareDirectories makes the others that are missing.
Status CheckDirectories(FileIo& io);
Status PrepareDirectories(FileIo& io);

// kNotFound, with what to do.
Status NoStoreAt(const std::string& path);

// Reads FORMAT. kNotFound when there is no store, kUnknownFormat for a version or an incompatible
// feature that this program does not know, kCorrupt when its checksum does not fit or when it is
// missing from a store.
Result<StoreFormat> ReadFormat(FileIo& io);

// The first number that no stream ever had: 1 before the first purge. Only a purge makes it
// necessary, for every other stream leaves a chain behind. kCorrupt with what to do.
Result<uint32_t> ReadNextStream(FileIo& io);
Status WriteNextStream(FileIo& io, uint32_t next);  // durable on return

// A random UUID (RFC 9562 version 4) as text.
std::string NewUuid();

}  // namespace memoirfs::volume
