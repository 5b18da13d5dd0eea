#pragma once

#include <string>

namespace memoirfs::fuse {

// libfuse's own messages go to the log from now on (it would print them to stderr).
void RouteLibfuseLog();

// What libfuse said last on this thread since the last call; empty when nothing.
std::string TakeLibfuseMessage();

}  // namespace memoirfs::fuse
