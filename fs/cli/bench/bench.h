#pragma once

// `memoirfs bench`: the first rows of the project's budgets, measured on any directories side by
// side. Rounds are interleaved over the directories, so that what else the machine does strikes
// all of them alike; the numbers that count are the ratios to the first directory.

#include <cstdint>
#include <string>
#include <vector>

namespace memoirfs::bench {

struct BenchOptions {
  std::vector<std::string> directories;  // the first is what the others are compared with
  uint64_t rounds = 5;                   // after one for warming up
  uint64_t big_bytes = 256ULL << 20;     // of the file that is read in sequence
  bool json = false;
};

// Measures and prints to stdout. Each directory gets a folder of its own, which is taken away at
// the end. Returns the exit status: 0, or 1 with a message on stderr when a directory cannot be
// used or an operation fails.
int RunBench(const BenchOptions& options);

}  // namespace memoirfs::bench
