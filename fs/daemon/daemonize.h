#pragma once

// Serving in a process of its own: this one forks while it has one thread; the child tells it when
// it is ready, or why it never will be.

#include <functional>
#include <string>

#include "store/base/status.h"
#include "store/base/unique_fd.h"

namespace memoirfs::daemon {

// The child's end of the pipe to the parent. Destroyed unsaid, the parent reports a failure.
class ReadySignal {
 public:
  ReadySignal(UniqueFd pipe, bool keeps_terminal)
      : pipe_(std::move(pipe)), keeps_terminal_(keeps_terminal) {}

  // Both at most once. Ready also lets go of the terminal: stdin, stdout and stderr.
  void Ready();
  void Failed(const Status& status);
  // Every descriptor but this one, stdin, stdout and stderr.
  void CloseOthers() const;

 private:
  UniqueFd pipe_;
  const bool keeps_terminal_;
};

using ChildMain = std::function<int(ReadySignal)>;

// Forks; the child runs `child` with umask 077 and exits with its value. Returns, in the parent,
// when the child said that it is ready: its process id; or that it failed: its error, and the child
// is gone. Precondition: this process has one thread.
Result<pid_t> RunAsChild(const ChildMain& child);

// The same in a session of its own, without terminal.
Status RunAsDaemon(const ChildMain& child);

}  // namespace memoirfs::daemon
