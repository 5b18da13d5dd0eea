#pragma once

// What is mounted where, as /proc/self/mountinfo says it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/status.h"

namespace memoirfs::fuse {

inline constexpr char kFileSystemType[] = "fuse.memoirfs";

struct MountEntry {
  std::string device;  // "0:52"
  std::string mountpoint;
  std::string type;
  std::string source;  // of ours: the store's path
};

// In the kernel's order: of several at one place, the topmost last. Lines that do not parse are
// left out.
std::vector<MountEntry> ParseMountInfo(std::string_view text);
Result<std::vector<MountEntry>> ReadMountInfo();

// The topmost mount at exactly `mountpoint`.
Result<std::optional<MountEntry>> FindMount(const std::string& mountpoint);

}  // namespace memoirfs::fuse
