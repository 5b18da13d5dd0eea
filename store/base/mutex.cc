#include "store/base/mutex.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace memoirfs::lock_rank_internal {
#ifndef NDEBUG
namespace {
// How many locks of each rank this thread holds.
thread_local std::array<uint8_t, static_cast<size_t>(LockRank::kLeaf) + 1> held{};
}  // namespace

void Acquired(LockRank rank) {
  for (size_t r = static_cast<size_t>(rank); r < held.size(); ++r) {
    if (held[r] == 0) continue;
    std::fprintf(stderr, "lock rank: rank %d taken while rank %zu is held\n",
                 static_cast<int>(rank), r);
    std::abort();
  }
  ++held[static_cast<size_t>(rank)];
}

void Released(LockRank rank) { --held[static_cast<size_t>(rank)]; }
#endif
}  // namespace memoirfs::lock_rank_internal
