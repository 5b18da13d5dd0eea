#pragma once

// The decision to purge an agent, as it lies in the store until it is carried out. Once it is
// durable the agent is gone: every opening carries it out, from the start where one was cut short,
// before it reads anything else. Byte layout: store/FORMAT.md "Purges".

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "store/base/digest.h"
#include "store/base/file_io.h"
#include "store/base/types.h"
#include "store/journal/frame.h"

namespace memoirfs::volume {

struct PurgePlan {
  StreamId stream;
  // Files of frames beyond these were written after the decision, and are left alone: what another
  // agent stored anew since then is not the purged agent's.
  uint64_t last_pack = 0;
  uint64_t last_bulk = 0;
  std::unordered_set<Digest> objects;  // that no other agent refers to

  bool Covers(journal::PackId pack) const {
    return pack.number <= (pack.bulk ? last_bulk : last_pack);
  }
  bool Erases(const Digest& digest, journal::PackId pack) const {
    return Covers(pack) && objects.count(digest) != 0;
  }
};

// Durable on return.
Status WritePurgePlan(FileIo& io, const PurgePlan& plan);
// nullopt when no purge is under way. kCorrupt with what to do.
Result<std::optional<PurgePlan>> ReadPurgePlan(FileIo& io);
Status RemovePurgePlan(FileIo& io);

}  // namespace memoirfs::volume
