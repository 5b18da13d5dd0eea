#pragma once

// Leaving the terminal: the process forks while it has one thread; the child becomes a daemon and
// tells the parent when it is ready, or why it never will be.

#include <functional>
#include <string>

#include "store/base/status.h"
#include "store/base/unique_fd.h"

namespace memoirfs::daemon {

// The child's end of the pipe to the parent. Destroyed unsaid, the parent reports a failure.
class ReadySignal {
 public:
  ReadySignal() = default;  // of a daemon in the foreground: says nothing to anybody
  explicit ReadySignal(UniqueFd pipe) : pipe_(std::move(pipe)) {}

  // Both at most once. Ready also lets go of the terminal: stdin, stdout and stderr.
  void Ready();
  void Failed(const Status& status);

 private:
  UniqueFd pipe_;
};

// Forks; the child runs `child` in a session of its own with umask 077 and exits with its value.
// Returns, in the parent, when the child said that it is ready (ok) or failed (its error).
// Precondition: this process has one thread.
Status RunAsDaemon(const std::function<int(ReadySignal)>& child);

}  // namespace memoirfs::daemon
