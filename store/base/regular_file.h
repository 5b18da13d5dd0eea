#pragma once

// Openings of files that must be regular ones. Where somebody put a FIFO, a device, a socket, a
// directory or a link in place of a file of ours, an ordinary open(2) waits for ever, or reads
// without end. FileIo opens this way; so do the few files outside of it: LOCK and daemon.log.

#include <fcntl.h>

#include <string>

#include "store/base/status.h"
#include "store/base/unique_fd.h"

namespace memoirfs {

// Not to wait for the other end of a FIFO, nor to follow a link. A regular file heeds O_NONBLOCK in
// nothing that we do with it.
inline constexpr int kRegularFileFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

// The descriptor of an opening, when it is of a regular file; otherwise kCorrupt, with what is
// there and what to do. `shown` is the path for messages.
Result<UniqueFd> OnlyRegular(UniqueFd file, const std::string& shown);

// What to say where `name` in the directory `dir` (AT_FDCWD: the working directory) could not be
// opened: the same as OnlyRegular where something odd is there, otherwise `failure`.
Status FailureOfOpening(const Status& failure, int dir, const char* name, const std::string& shown);

// `flags` are those of open(2); a file that it makes has mode 0600.
Result<UniqueFd> OpenRegularFile(const std::string& path, int flags);

}  // namespace memoirfs
