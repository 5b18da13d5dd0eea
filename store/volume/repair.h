#pragma once

// Repair of a store that no process holds: the index is derived and is rebuilt from chains and
// packs; leftovers are settled as any opening settles them. Nothing acknowledged is dropped.

#include <cstdint>
#include <string>
#include <vector>

#include "store/volume/volume.h"

namespace memoirfs::volume {

struct RepairReport {
  uint64_t records = 0;
  std::vector<std::string> notes;
};

// The caller holds the store's lock.
Result<RepairReport> RepairStore(FileIo& io, Clock& clock, VolumeOptions options = {});

}  // namespace memoirfs::volume
