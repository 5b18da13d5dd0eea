#pragma once

// Canonical JSON (RFC 8785, integers only) written directly, for text whose shape is known when
// the code is written: no tree is built and nothing is sorted.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/status.h"

namespace memoirfs {

// The largest integer that every reader of JSON represents exactly.
inline constexpr uint64_t kMaxJsonInteger = (1ULL << 53) - 1;

// Appends `text` as a JSON string, with the escapes of RFC 8785. Precondition: valid UTF-8.
void AppendJsonString(std::string_view text, std::string* out);

// Appends canonical JSON text with every character beyond ASCII as \uXXXX: the same value.
// Precondition: valid UTF-8.
void AppendAsAscii(std::string_view canonical, std::string* out);

// Writes one object, members in canonical order (asserted in debug builds). Keys are literals:
// ASCII, nothing to escape, alive as long as the writer. The first failure is kept: kTooLarge for
// an integer that is not below 2^53, kInvalidArgument for a string that is not UTF-8. Not
// thread-safe.
class CanonicalWriter {
 public:
  CanonicalWriter();

  void BeginObject(std::string_view key);
  void EndObject();
  void String(std::string_view key, std::string_view value);
  void Unsigned(std::string_view key, uint64_t value);
  void Signed(std::string_view key, int64_t value);
  void True(std::string_view key);
  // `json` is a canonical value.
  void Raw(std::string_view key, std::string_view json);

  // Where the next byte goes.
  size_t size() const { return out_.size(); }
  // Ends the outermost object. The text, or the first failure.
  Result<std::string> Finish();

 private:
  void Key(std::string_view key);
  void Fail(Code code, std::string_view key, std::string_view what);

  std::string out_;
  std::vector<std::string_view> last_keys_;  // of each open object; empty before its first member
  Status failure_;
};

}  // namespace memoirfs
