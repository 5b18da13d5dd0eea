#pragma once

// JSON text to values and back. The only header that shows nlohmann's type; include it in .cc
// files only.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "store/base/status.h"

namespace memoirfs {

using Json = nlohmann::json;

// Strict RFC 8259, with what an attacker would use refused: duplicate keys, more than `max_depth`
// levels, text that is not UTF-8, a byte order mark, lone surrogates, trailing text.
// kInvalidArgument with the byte offset, or the key.
Result<Json> ParseJson(std::string_view text, int max_depth = 64);

// On one line, for who reads facts: what is not UTF-8 in a string becomes U+FFFD.
std::string DumpJson(const Json& value);

// A member that is a string; empty where it is missing.
std::string TextOf(const Json& object, const char* member);

// RFC 8785 (JCS) restricted to integers, as Runtime Records use it: kInvalidArgument for a number
// that has a fraction, is not finite, or whose absolute value is above 2^53 - 1.
Result<std::string> Canonicalize(const Json& value);

// The canonical form of `value` with every character beyond ASCII as \uXXXX: the same JSON value
// on one line that survives every reader. Canonicalize(ParseJson(x)) of it gives the same hash.
Result<std::string> CanonicalAscii(const Json& value);

}  // namespace memoirfs
