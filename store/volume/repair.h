#pragma once

// Repair of a store that nobody serves: the index rebuilt from the chains, what is left over
// adopted or moved to quarantine. Never drops what was acknowledged.

#include <cstdint>
#include <string>
#include <vector>

#include "store/volume/volume.h"

namespace memoirfs::volume {

struct RepairReport {
  bool index_rebuilt = false;
  uint64_t records = 0;
  uint64_t objects = 0;
  std::vector<std::string> notes;  // one sentence each
};

// The caller holds the store's lock.
Result<RepairReport> RepairStore(FileIo& io, Clock& clock, VolumeOptions options = {});

}  // namespace memoirfs::volume
