#pragma once

// What may be the name of a directory entry, of an agent, and what is valid UTF-8.

#include <string>
#include <string_view>

#include "store/base/status.h"

namespace memoirfs {

inline constexpr size_t kMaxNameBytes = 255;

bool IsValidUtf8(std::string_view text);

// Bytes that are not UTF-8 become \xNN, and a backslash becomes \\: for the chain, where every
// string must be valid UTF-8 (a process may call itself anything).
std::string EscapeInvalidUtf8(std::string_view raw);

// A name for a directory entry: 1 to 255 bytes of valid UTF-8, no '/', no NUL, not "." or "..".
// kNameTooLong, kIllegalName (not UTF-8) or kInvalidArgument.
Status CheckFileName(std::string_view name);

// An agent's name: 1 to 64 of the letters, digits and "._-" of ASCII, starting with a letter or a
// digit. Names that a file name, a wire name and a witness's subject can all carry.
// kInvalidArgument with a sentence that says what is allowed.
Status CheckAgentName(std::string_view name);

}  // namespace memoirfs
