#pragma once

// What is measured: one row a use of a file system, each a function that does it once through and
// says how long one operation took.

#include <cstdint>
#include <span>
#include <string_view>

#include "fs/cli/bench/workspace.h"
#include "store/base/status.h"

namespace memoirfs::bench {

struct RowContext {
  Workspace& workspace;
  uint64_t big_bytes;
};

struct Row {
  std::string_view name;   // in JSON: stable
  std::string_view title;  // for people
  std::string_view unit;
  bool higher_is_better;
  bool cold;  // the kernel's cache is dropped before each round
  // Makes the files that the row needs, once a directory; may be null.
  Status (*prepare)(RowContext& context);
  // One round, in `unit`.
  Result<double> (*measure)(RowContext& context);
};

std::span<const Row> AllRows();

}  // namespace memoirfs::bench
