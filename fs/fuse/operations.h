#pragma once

#include <fuse_lowlevel.h>

namespace memoirfs::fuse {

// The table of operations; the userdata of its session is a SessionContext.
const fuse_lowlevel_ops& Operations();

}  // namespace memoirfs::fuse
