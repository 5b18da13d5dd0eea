#pragma once

// One system call of a sequence, as a line of text:
//
//   [as UID] CALL ARGUMENT…
//
// Everything stays text until the call is made, so that a sequence is generated, printed, shortened
// and replayed in one form. In an argument, %41 is the byte 0x41, `''` is the empty string, and
// `<n*255>` is 255 times "n". Lines that begin with # are comments.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace memoirfs::parity {

struct Step {
  uid_t user = 0;
  std::string call;
  std::vector<std::string> arguments;
};

using Script = std::vector<Step>;

// Throws std::invalid_argument for a line that is no step.
Step ParseStep(std::string_view line);
Script ParseScript(std::string_view text);

std::string Format(const Step& step);
std::string Format(const Script& script);

// The bytes that an argument stands for.
std::string Expand(std::string_view argument);

}  // namespace memoirfs::parity
