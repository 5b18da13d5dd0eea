#pragma once

// Runs one script on both sides, in fresh directories, and compares after each step.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/e2e/parity/clock.h"
#include "tests/e2e/parity/compare.h"
#include "tests/e2e/parity/executor.h"

namespace memoirfs::parity {

struct Sides {
  std::string reference;
  std::string mount;
};

struct RunOptions {
  CompareOptions compare;
  Depth each_step = Depth::kFacts;  // at the end everything is compared
  Sabotage sabotage = nullptr;
  bool trace = false;
};

struct Divergence {
  size_t step = 0;   // index of the step after which it was seen
  std::string kind;  // the call and what differs: two divergences of one kind have one cause
  std::string text;
};

// How often each call was made, and how often it worked.
struct CallCount {
  uint64_t made = 0;
  uint64_t worked = 0;
};
using CallCounts = std::map<std::string, CallCount>;

class Pair {
 public:
  // Makes a directory `name` on each side.
  Pair(const Sides& sides, const std::string& name, const RunOptions& options);
  // Removes them, unless they are to be kept.
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  std::optional<Divergence> Run(const Script& script, CallCounts* counts = nullptr);

  // After a run: leaves the mount's directory where it is.
  Snapshot KeepMountSide();

 private:
  // What closing everything leaves is compared like a step.
  std::optional<Divergence> Close();
  std::optional<Divergence> CompareNow(const std::string& call, Depth depth);
  std::optional<Divergence> RunStep(const Step& step, Depth depth, CallCounts* counts);
  void NoteUntimed(const Step& step);

  Sides directories_;
  RunOptions options_;
  FineClock clock_;
  std::optional<Executor> reference_;
  std::optional<Executor> mount_;
  Snapshot reference_before_;
  Snapshot mount_before_;
  std::set<ino_t> untimed_;  // what the list in differences.cc says of times
  bool keep_mount_ = false;
};

}  // namespace memoirfs::parity
