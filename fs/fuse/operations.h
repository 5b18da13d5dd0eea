#pragma once

#include <fuse_lowlevel.h>

#include <cstdint>

namespace memoirfs::fuse {

// Bytes in one READ or WRITE.
inline constexpr uint32_t kLargestRequest = 1U << 20;

// The table of operations; the userdata of its session is a SessionContext.
const fuse_lowlevel_ops& Operations();

}  // namespace memoirfs::fuse
