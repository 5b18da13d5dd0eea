#include "fs/daemon/supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <optional>
#include <string>

#include "store/base/log.h"

namespace memoirfs::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

timespec ToTimespec(milliseconds duration) {
  return {duration.count() / 1000, duration.count() % 1000 * 1'000'000};
}

std::string TextOfEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "by signal " + std::to_string(WTERMSIG(wait_status));
  return "with exit status " + std::to_string(WEXITSTATUS(wait_status));
}

class Supervisor {
 public:
  Supervisor(const ChildMain& serve, const SupervisorOptions& options)
      : serve_(serve), options_(options), pause_(options.first_pause) {
    sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    ::signal(SIGCHLD, SIG_DFL);  // where it is ignored nobody learns of a death
  }
  ~Supervisor() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Status Run(const std::function<void(uint64_t)>& on_ready) {
    TRY(Start());
    for (uint64_t deaths = 0;; ++deaths) {
      on_ready(deaths);
      const int end = WaitForEnd();
      if (WIFEXITED(end) && WEXITSTATUS(end) == 0) return {};
      // With a status of its own it ended because it was told to, and could not save everything.
      if (WIFEXITED(end) || told_to_end_) {
        return Status(Code::kInternal, "the daemon ended " + TextOfEnd(end) + "; its log says why");
      }
      Log(LogLevel::kError, "supervise.death", "the daemon ended " + TextOfEnd(end));
      if (!StartAgain()) return {};
    }
  }

 private:
  Status Start() {
    const pid_t parent = ::getpid();
    const auto child = [&](ReadySignal ready) {
      pthread_sigmask(SIG_SETMASK, &before_, nullptr);
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) return 1;  // it died before that was asked for
      return serve_(std::move(ready));
    };
    ASSIGN_OR_RETURN(child_, RunAsChild(child));
    started_ = steady_clock::now();
    return {};
  }

  // False when this process was told to end meanwhile.
  bool StartAgain() {
    if (steady_clock::now() - started_ >= options_.lasting) pause_ = options_.first_pause;
    for (;;) {
      if (!Pause()) return false;
      const Status status = Start();
      if (status.ok()) return true;
      Log(LogLevel::kError, "supervise.start", status.ToString());
    }
  }

  bool Pause() {
    const auto until = steady_clock::now() + pause_;
    pause_ = std::min(2 * pause_, options_.longest_pause);
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
      if (left <= milliseconds(0)) return true;
      const timespec timeout = ToTimespec(left);
      const int signal = ::sigtimedwait(&signals_, nullptr, &timeout);
      if (signal > 0 && signal != SIGCHLD) return false;
    }
  }

  // The child's wait status. What ends this process ends the child.
  int WaitForEnd() {
    for (;;) {
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) return status;
      int signal = 0;
      if (::sigwait(&signals_, &signal) != 0 || signal == SIGCHLD) continue;
      told_to_end_ = true;
      ::kill(child_, SIGTERM);
    }
  }

  const ChildMain& serve_;
  const SupervisorOptions options_;
  milliseconds pause_;
  sigset_t signals_{};
  sigset_t before_{};
  pid_t child_ = -1;
  steady_clock::time_point started_;
  bool told_to_end_ = false;
};

}  // namespace

Status Supervise(const ChildMain& serve, const std::function<void(uint64_t)>& on_ready,
                 const SupervisorOptions& options) {
  return Supervisor(serve, options).Run(on_ready);
}

}  // namespace memoirfs::daemon
