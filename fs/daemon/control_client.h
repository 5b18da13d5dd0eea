#pragma once

#include <string>

#include "fs/daemon/request.h"
#include "store/base/status.h"

namespace memoirfs::daemon {

// Asks the daemon that holds `store`; blocks until its result. The parts that come before go to
// `sink`. kUnavailable when no daemon listens (nothing was asked then), kInterrupted when it ended
// while it answered, its own error otherwise.
Result<std::string> AskDaemon(const std::string& store, const Request& request, ReplySink& sink);

}  // namespace memoirfs::daemon
