#pragma once

// The differences between the mount and the reference that are known and justified. fs/README.md
// tells users of them; a test compares the two lists.

#include <string>
#include <string_view>
#include <vector>

#include "tests/e2e/parity/step.h"

namespace memoirfs::parity {

// A call that the mount answers otherwise, and always the same. The reference is then not asked, so
// that both sides stay alike.
struct KnownAnswer {
  std::string_view what;  // a phrase of the row or sentence in fs/README.md
  std::string_view why;
  std::string_view answer;
  bool (*applies)(const Step&);
};

// Something that is not compared.
struct NotCompared {
  std::string_view what;
  std::string_view why;
};

const std::vector<KnownAnswer>& KnownAnswers();
const std::vector<NotCompared>& WhatIsNotCompared();

// Whether `answer` is what the mount is known to give for this step.
bool IsKnownAnswer(const Step& step, const std::string& answer);

}  // namespace memoirfs::parity
