#pragma once

// Compares what a step left on the two sides.

#include <optional>
#include <set>
#include <string>

#include "tests/e2e/parity/snapshot.h"

namespace memoirfs::parity {

struct Difference {
  std::string aspect;  // what differs, in a word: "mode", "mtime"
  std::string text;    // where, and the two values
};

// One side before and after a step.
struct Change {
  const Snapshot& before;
  const Snapshot& after;
};

struct CompareOptions {
  bool access_times = false;  // the reference does not change them by reading
  bool movements = false;     // the reference's clock tells each two steps apart
  time_t started = 0;         // times from here on are "now"
};

// The first difference. `untimed`: inode numbers of the reference whose mtime and ctime are not
// compared.
std::optional<Difference> Compare(const Change& reference, const Change& mount,
                                  const CompareOptions& options, const std::set<ino_t>& untimed);

// The first difference between two whole snapshots of the same side, of which nothing may change.
std::optional<Difference> CompareExactly(const Snapshot& before, const Snapshot& after);

}  // namespace memoirfs::parity
