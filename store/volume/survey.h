#pragma once

// What the chains say as they lie on the disk. An opening recovers, and recovery writes: who wants
// to know whether a store was put back to an older state looks before it.

#include <map>
#include <optional>

#include "store/base/file_io.h"
#include "store/chain/record.h"

namespace memoirfs::volume {

struct SurveyedChain {
  chain::Head last;            // the last record found; seq 0 where there is none
  std::optional<Digest> hash;  // of the record that was asked for
};

// Looks for one record of each chain in `wanted`: in its segments, where a store that was stopped
// cleanly has it last; else in journals and packs, which segments lag behind. Only records whose
// hash fits their text count. Changes nothing.
Result<std::map<StreamId, SurveyedChain>> SurveyChains(FileIo& io,
                                                       const std::map<StreamId, Seq>& wanted);

}  // namespace memoirfs::volume
