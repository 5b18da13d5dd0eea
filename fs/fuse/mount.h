#pragma once

// What a session has to do with the mount table: the options it mounts with, why mounting cannot
// work, what is mounted where, and taking a mount away.

#include <optional>
#include <string>

#include "fs/fuse/session.h"

namespace memoirfs::fuse {

// A directory that answers, or what to do about it.
Status CheckMountpoint(const std::string& path);

// The failures that can be foreseen, each with what to do about it.
Status CheckMountable(const SessionOptions& options);

// The value of libfuse's -o.
std::string MountOptionsOf(const SessionOptions& options);

// Explains a mount that failed all the same; `libfuse` is what libfuse said about it.
Status ExplainMountFailure(const SessionOptions& options, const std::string& libfuse);

// Whether the device (as MountEntry has it) is mounted at `path` (canonical), topmost or not.
Result<bool> IsMountedAt(const std::string& path, const std::string& device);

// Lets the kernel read ahead as much as one request holds. INIT can only lower what it begins with,
// 128 KiB, so this comes after it, through /sys; where that is not permitted (it is root's) big
// reads come in smaller requests.
void WidenReadahead(const std::string& device, uint32_t bytes);

// Takes the topmost mount at `path` away: by umount2(2), or by fusermount3 where that is not
// permitted, whose words a failure has. kBusy while files are open and `lazy` is not set.
Status TakeMountAway(const std::string& path, bool lazy);

}  // namespace memoirfs::fuse
