#pragma once

// Records for tests: one of every operation as the store writes it, and random ones.

#include <random>
#include <string>
#include <vector>

#include "store/chain/record.h"

namespace memoirfs::test {

chain::RecordContext SampleContext();

// A change of each operation, genesis first, with every member that the operation uses.
std::vector<chain::Change> SampleChanges();

// Any combination of members with hostile names, times and numbers; `detail` is canonical.
chain::Change RandomChange(std::mt19937& random);

// A chain of `count` records: the samples in turn, starting with genesis.
std::vector<chain::SealedRecord> SampleChain(size_t count);

}  // namespace memoirfs::test
