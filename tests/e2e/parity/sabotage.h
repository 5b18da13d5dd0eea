#pragma once

// Deliberate mistakes: by finding each of them, the suite shows that it can fail.

#include <string>
#include <string_view>
#include <vector>

#include "tests/e2e/parity/executor.h"

namespace memoirfs::parity {

// Null for an empty name. Throws std::invalid_argument for an unknown one.
Sabotage FindSabotage(const std::string& name);

std::vector<std::string_view> SabotageNames();

}  // namespace memoirfs::parity
