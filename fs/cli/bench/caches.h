#pragma once

#include <string>

#include "store/base/status.h"

namespace memoirfs::bench {

// How much of the kernel's cache was dropped.
enum class Coldness {
  kCold,        // all of it: written back, then dropped for the whole machine
  kAdviceOnly,  // only posix_fadvise on the files: dropping needs root
};

// Makes the next reads of the files in `folder` come from below the kernel's cache. What a daemon
// of a FUSE file system holds in its own memory stays.
Result<Coldness> DropCaches(const std::string& folder);

}  // namespace memoirfs::bench
