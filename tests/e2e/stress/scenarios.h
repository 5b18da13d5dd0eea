#pragma once

// What the workers do, and what must hold meanwhile and afterwards.

#include <string_view>
#include <vector>

#include "tests/e2e/stress/workers.h"

namespace memoirfs::stress {

struct Scenario {
  std::string_view name;
  std::string_view what;
  // Runs in an empty directory of each of the crew's; returns the number of operations.
  uint64_t (*run)(const Crew& crew);
};

const std::vector<Scenario>& Scenarios();

}  // namespace memoirfs::stress
