#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace memoirfs::cli {

// "notes.md@12" → "notes.md" and 12. A path without '@' and digits at its end is whole.
std::pair<std::string, std::optional<uint64_t>> SplitPathAtSeq(const std::string& text);

}  // namespace memoirfs::cli
