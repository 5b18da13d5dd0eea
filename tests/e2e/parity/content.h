#pragma once

// Content of files in scripts and reports.

#include <sys/types.h>

#include <string>
#include <string_view>

namespace memoirfs::parity {

// Files up to this size are read whole for a comparison, of others the first and the last part.
constexpr off_t kWholeContent = 8 << 20;

// The bytes that LENGTH:SEED or =TEXT stand for.
std::string Data(const std::string& argument);

// Bytes as text: the length, and a short text or a hash.
std::string Describe(std::string_view bytes);

}  // namespace memoirfs::parity
