#pragma once

// What can be seen of a directory tree and of the descriptors open in it.

#include <sys/stat.h>

#include <map>
#include <string>

#include "tests/e2e/parity/executor.h"

namespace memoirfs::parity {

struct Node {
  struct stat facts = {};
  std::string target;   // of a symbolic link
  std::string same_as;  // the first path of this inode, where that is another one
  std::string problem;  // what contradicts itself: a listing and the attributes
  // Taken in a whole snapshot only.
  std::string content;
  std::map<std::string, std::string> attributes;
};

// Paths relative to the root, which is ".", and `fd:SLOT` for open descriptors.
using Snapshot = std::map<std::string, Node>;

enum class Depth {
  kFacts,  // what stat and listings say
  kWhole,  // content and extended attributes too
};

Snapshot TakeSnapshot(const Executor& executor, Depth depth);

}  // namespace memoirfs::parity
