#pragma once

// What must hold of a directory before something is mounted on it.

#include <string>

#include "store/base/status.h"

namespace memoirfs::daemon {

// The absolute path of a mount point, links resolved: what the kernel will call it. Works for a
// dead mount too, of which nothing can be looked up.
Result<std::string> ResolveMountpoint(const std::string& path);

// An empty directory outside the store, after taking a dead mount ("Transport endpoint is not
// connected") away. `mountpoint` as ResolveMountpoint gives it.
Status PrepareMountpoint(const std::string& mountpoint, const std::string& store);

// Whether something is mounted there whose daemon is gone.
bool IsDeadMount(const std::string& mountpoint);

}  // namespace memoirfs::daemon
