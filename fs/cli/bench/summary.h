#pragma once

#include <vector>

namespace memoirfs::bench {

// What several rounds of one measurement say.
struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

// Precondition: at least one value.
Summary Summarize(std::vector<double> values);

}  // namespace memoirfs::bench
