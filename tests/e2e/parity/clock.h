#pragma once

// File times of the reference. Linux gives a change of a file that was looked at since its last
// change a time of its own; others share the time of a tick, or that of the last such change
// anywhere. A tick is long for a suite that makes thousands of calls a second, so the clock is
// moved on by hand before each call: by two changes of a file that was looked at.

#include <string>

#include "store/base/unique_fd.h"

namespace memoirfs::parity {

class FineClock {
 public:
  // Works with a nameless file in the file system of `directory`.
  explicit FineClock(const std::string& directory);

  void Advance();

  // Whether this file system and kernel do as said above.
  bool Works();

 private:
  UniqueFd fd_;
};

}  // namespace memoirfs::parity
