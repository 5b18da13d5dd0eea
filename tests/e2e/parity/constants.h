#pragma once

// The names that steps use for flags and modes.

#include <cstdint>
#include <string_view>

namespace memoirfs::parity {

// The value of `A|B|0644`: names and numbers (decimal, octal with 0, hexadecimal with 0x).
// Throws std::invalid_argument for an unknown name.
int64_t Value(std::string_view expression);

}  // namespace memoirfs::parity
