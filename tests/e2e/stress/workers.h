#pragma once

// Many processes with many threads doing the same at once, and a watchdog over them.

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/e2e/native/random.h"

namespace memoirfs::stress {

// What must never be seen.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Crew {
  unsigned processes = 4;
  unsigned threads = 2;
  unsigned rounds = 500;  // of each thread
  uint64_t seed = 1;
  std::vector<std::string> directories;  // worker n works in the n-th, and begins again at the end
  unsigned stall_seconds = 30;           // this long without progress is a deadlock
  std::string stall_command;             // run then, to print stacks

  unsigned workers() const { return processes * threads; }
};

struct Worker {
  unsigned number;
  unsigned rounds;
  std::string directory;
  e2e::Random random;
  std::atomic<uint64_t>* progress;  // shared by all processes

  void Advance() { progress->fetch_add(1, std::memory_order_relaxed); }
};

using Work = std::function<void(Worker&)>;

// Runs `work` in all workers. Throws Violation when one of them failed, or when nothing moved any
// more. Returns how often workers advanced.
uint64_t RunCrew(const Crew& crew, const Work& work);

}  // namespace memoirfs::stress
