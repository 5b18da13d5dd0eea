#pragma once

// Shortens a failing script by running parts of it.

#include <functional>

#include "tests/e2e/parity/step.h"

namespace memoirfs::parity {

// The shortest script found for which `fails` is true. `fails(script)` must be true.
Script Minimise(Script script, const std::function<bool(const Script&)>& fails);

}  // namespace memoirfs::parity
