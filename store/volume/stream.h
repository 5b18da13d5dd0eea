#pragma once

// One stream as the open volume knows it: the end of its chain, what is created and not committed.

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "store/base/mutex.h"
#include "store/chain/record.h"
#include "store/meta/schema.h"
#include "store/volume/intent.h"

namespace memoirfs::volume {

struct Stream {
  Stream(StreamId stream_id, const meta::StreamRow& row)
      : id(stream_id),
        agent(row.agent),
        removed(row.removed),
        head{row.seq, row.hash, row.ts},
        next_id(row.next_id) {}

  const StreamId id;
  const std::string agent;

  mutable Mutex mutex{LockRank::kStream};
  bool removed GUARDED_BY(mutex);
  chain::Head head GUARDED_BY(mutex);
  uint64_t next_id GUARDED_BY(mutex);
  bool session_recorded GUARDED_BY(mutex) = false;
  // Not empty: the chain is damaged where neither journal nor segment has the record.
  std::string read_only_reason GUARDED_BY(mutex);
  // Files that were created and not committed, and truncations of such that were: by their intents.
  std::unordered_map<InodeId, Intent> creates GUARDED_BY(mutex);
  std::unordered_map<InodeId, Intent> truncations GUARDED_BY(mutex);
};

inline chain::Head HeadOf(const Stream& stream) {
  const MutexLock lock(stream.mutex);
  return stream.head;
}

}  // namespace memoirfs::volume
