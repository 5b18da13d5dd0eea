#include "fs/daemon/daemonize.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "fs/daemon/request.h"

namespace memoirfs::daemon {
namespace {

constexpr std::string_view kReady = "ready";

void Send(const UniqueFd& pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(pipe.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the parent is gone: nobody to tell
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string ReadAll(const UniqueFd& pipe) {
  std::string text;
  std::array<char, 4096> piece{};
  while (true) {
    const ssize_t n = ::read(pipe.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(piece.data(), static_cast<size_t>(n));
  }
}

void LetGoOfTerminal() {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), fd);
}

[[noreturn]] void RunChild(ReadySignal ready, const ChildMain& child) {
  ::umask(077);
  if (::chdir("/") != 0) std::_Exit(1);  // no mount is held busy by where it was started
  // exit() and not _Exit(): sanitizers and coverage report at exit.
  std::exit(child(std::move(ready)));  // NOLINT(concurrency-mt-unsafe)
}

// What a child that is not ready said, when it is gone.
Status WhyNotReady(pid_t pid, const std::string& said) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (Result<Reply> reply = DecodeReply(said); reply.ok() && !reply->error.ok()) {
    return reply->error;
  }
  return Status(Code::kInternal, "the daemon ended before it was ready");
}

Result<pid_t> Fork(const ChildMain& child, bool keeps_terminal) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Status::FromErrno(errno, "make a pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::fflush(nullptr);  // or the child would write what is buffered once more
  const pid_t pid = ::fork();
  if (pid < 0) return Status::FromErrno(errno, "start the daemon");
  if (pid == 0) {
    read_end.Reset();
    RunChild(ReadySignal(std::move(write_end), keeps_terminal), child);
  }
  write_end.Reset();
  const std::string said = ReadAll(read_end);
  if (said == kReady) return pid;
  return WhyNotReady(pid, said);
}

}  // namespace

void ReadySignal::Ready() {
  if (!pipe_.valid()) return;
  if (!keeps_terminal_) LetGoOfTerminal();
  Send(pipe_, kReady);
  pipe_.Reset();
}

// Locks and pipes of who called us would be held for as long as the daemon lives.
void ReadySignal::CloseOthers() const {
  const auto kept = static_cast<unsigned>(pipe_.get());
  if (kept > STDERR_FILENO + 1) ::close_range(STDERR_FILENO + 1, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
}

void ReadySignal::Failed(const Status& status) {
  if (!pipe_.valid()) return;
  Send(pipe_, EncodeReply({.kind = Reply::Kind::kError, .error = status}));
  pipe_.Reset();
}

Result<pid_t> RunAsChild(const ChildMain& child) { return Fork(child, /*keeps_terminal=*/true); }

Status RunAsDaemon(const ChildMain& child) {
  const auto in_session = [&](ReadySignal ready) {
    ::setsid();
    ready.CloseOthers();
    return child(std::move(ready));
  };
  return status_internal::AsStatus(Fork(in_session, /*keeps_terminal=*/false));
}

}  // namespace memoirfs::daemon
