// Supervision of a child process that dies, fails to start, and ends.

#include "fs/daemon/supervisor.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {
namespace {

using std::chrono::milliseconds;

constexpr SupervisorOptions kFast{milliseconds(1), milliseconds(4), milliseconds(60'000)};

// Counts the starts in a file: each child is a process of its own.
class Starts {
 public:
  int Next() const {
    const int count = Count() + 1;
    std::ofstream(path_) << count;
    return count;
  }
  int Count() const {
    int count = 0;
    std::ifstream(path_) >> count;
    return count;
  }

 private:
  const test::Scratch scratch_;
  const std::string path_ = scratch_ / "count";
};

[[noreturn]] void End(int status) { std::_Exit(status); }  // not this test program's own exit

}  // namespace

TEST_CASE("a child that dies is started again, until it ends by itself") {
  const Starts starts;
  std::vector<uint64_t> deaths;
  const auto serve = [&](ReadySignal ready) -> int {
    const int number = starts.Next();
    ready.Ready();
    if (number < 4) ::kill(::getpid(), SIGKILL);
    End(0);
  };
  CHECK(Supervise(
            serve, [&](uint64_t count) { deaths.push_back(count); }, kFast)
            .ok());
  CHECK(starts.Count() == 4);
  CHECK(deaths == std::vector<uint64_t>{0, 1, 2, 3});
}

TEST_CASE("a child that ends by itself is not started again, even when it could not save") {
  const Starts starts;
  const auto serve = [&](ReadySignal ready) -> int {
    starts.Next();
    ready.Ready();
    End(1);
  };
  CHECK(Supervise(
            serve, [](uint64_t) {}, kFast)
            .code() == Code::kInternal);
  CHECK(starts.Count() == 1);
}

TEST_CASE("a first start that fails is told, and not tried again") {
  const Starts starts;
  const auto serve = [&](ReadySignal ready) -> int {
    starts.Next();
    ready.Failed(Status(Code::kNotFound, "no such agent"));
    End(1);
  };
  CHECK(Supervise(
            serve, [](uint64_t) { FAIL("it is not ready"); }, kFast)
            .code() == Code::kNotFound);
  CHECK(starts.Count() == 1);
}

TEST_CASE("a later start that fails is tried again") {
  const Starts starts;
  const auto serve = [&](ReadySignal ready) -> int {
    const int number = starts.Next();
    if (number > 1 && number < 5) {
      ready.Failed(Status(Code::kLocked, "another command works on the store"));
      End(1);
    }
    ready.Ready();
    if (number == 1) ::kill(::getpid(), SIGKILL);
    End(0);
  };
  CHECK(Supervise(
            serve, [](uint64_t) {}, kFast)
            .ok());
  CHECK(starts.Count() == 5);
}

TEST_CASE("a signal to the supervisor ends the child in an orderly way") {
  const int exit_status = GENERATE(0, 1);
  const int signal = GENERATE(SIGTERM, SIGINT, SIGHUP);
  const auto serve = [&](ReadySignal ready) -> int {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, nullptr);
    ready.Ready();
    int got = 0;
    sigwait(&term, &got);
    End(exit_status);
  };
  const Status status = Supervise(
      serve, [&](uint64_t) { ::raise(signal); }, kFast);
  CHECK(status.code() == (exit_status == 0 ? Code::kOk : Code::kInternal));
}

}  // namespace memoirfs::daemon
