#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/cli/bench/caches.h"
#include "fs/cli/bench/rows.h"
#include "fs/cli/bench/summary.h"

namespace memoirfs::bench {

// One row over all directories, in their order.
struct RowResult {
  const Row* row = nullptr;
  std::vector<Summary> directories;
  std::optional<Coldness> coldness;  // of rows that want a cold cache
};

struct Report {
  std::vector<std::string> directories;
  uint64_t rounds = 0;
  uint64_t big_bytes = 0;
  std::vector<RowResult> rows;
};

// Tables for people: medians with the spread, ratios to the first directory, and how it was done.
std::string ReportText(const Report& report);
std::string ReportJson(const Report& report);

}  // namespace memoirfs::bench
