#pragma once

// What a record does to the index. One function for a change that is being made, for recovery and
// for a rebuild, so that the index always equals the replay of the chain.

#include "store/chain/record.h"
#include "store/meta/index.h"
#include "store/volume/tables.h"

namespace memoirfs::volume {

// The details of `event` records that take an agent off the mounts and bring it back.
inline constexpr char kAgentRemoved[] = R"({"event":"agent-removed"})";
inline constexpr char kAgentRestored[] = R"({"event":"agent-restored"})";

// Where the record stands in its chain; with seq 0, a file that is created and not committed yet.
struct RecordPlace {
  StreamId stream;
  std::string agent;
  Seq seq;
  Digest hash;
  Nanos ts = 0;
};

// Adds to `batch` what `change` does to the rows that `tables` shows. kCorrupt when the change does
// not fit them (a record that no mount could have made).
Status ApplyChange(const Tables& tables, const RecordPlace& place, const chain::Change& change,
                   meta::Batch& batch);

// The keys of the rows of an uncommitted file that must go when it is removed again. Its parent's
// row stays: its time is what a listing showed.
std::vector<Bytes> PendingKeys(StreamId stream, const chain::Change& create);

}  // namespace memoirfs::volume
