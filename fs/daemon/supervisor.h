#pragma once

// Keeps a daemon alive: runs it in a child process, and again whenever it dies, until it ends by
// itself or the supervising process is told to end.

#include <chrono>
#include <functional>

#include "fs/daemon/daemonize.h"
#include "store/base/status.h"

namespace memoirfs::daemon {

struct SupervisorOptions {
  // Between a death and the next start; doubled with each start that fails or does not last.
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{30'000};
  // A child that lived as long is one that works: the next pause is the first one again.
  std::chrono::milliseconds lasting{10'000};
};

// `serve` is the daemon's main program; `on_ready` is called each time that a child is ready, with
// the number of deaths before. Returns
// * the error of the first start, when that fails: nothing would mend itself;
// * ok when a child ended with success (somebody took its mount away), or when this process got
//   SIGTERM, SIGINT or SIGHUP, which are passed on, and the child then ended with success;
// * kInternal when the child failed while it was ending on request.
// A child outlives its supervisor by no more than an orderly end: it gets SIGTERM then.
// Precondition: one thread; blocks the signals named above and SIGCHLD in it.
Status Supervise(const ChildMain& serve, const std::function<void(uint64_t)>& on_ready,
                 const SupervisorOptions& options = {});

}  // namespace memoirfs::daemon
