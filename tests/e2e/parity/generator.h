#pragma once

// Random sequences of steps. Few names, so that calls meet the same files, and values that sit at
// the limits.

#include "tests/e2e/native/random.h"
#include "tests/e2e/parity/step.h"

namespace memoirfs::parity {

struct GeneratorOptions {
  size_t steps = 30;
  bool other_users = false;  // some steps act as another user: needs root
};

Script Generate(uint64_t seed, const GeneratorOptions& options);

}  // namespace memoirfs::parity
