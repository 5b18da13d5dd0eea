// Becoming a daemon: what the parent learns.

#include "fs/daemon/daemonize.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {

TEST_CASE("the parent returns when the child is ready, and the child has left the terminal") {
  const test::Scratch scratch;
  const std::string facts = scratch / "facts";
  const Status status = RunAsDaemon([&](ReadySignal ready) {
    const bool own_session = ::getsid(0) == ::getpid();
    const bool private_umask = ::umask(077) == 077;
    const std::string directory = std::filesystem::current_path().string();
    std::ofstream(facts) << own_session << private_umask << directory;
    ready.Ready();
    std::_Exit(0);
    return 0;
  });
  REQUIRE(status.ok());
  std::string text;
  std::ifstream(facts) >> text;
  CHECK(text == "11/");
}

TEST_CASE("the parent gets the child's failure with code and text") {
  const Status status = RunAsDaemon([](ReadySignal ready) {
    ready.Failed(Status(Code::kUnknownFormat, "made by another version"));
    std::_Exit(1);
    return 1;
  });
  CHECK(status.code() == Code::kUnknownFormat);
  CHECK(status.message() == "made by another version");
}

TEST_CASE("a child that dies without a word is a failure") {
  const Status status = RunAsDaemon([](ReadySignal) {
    std::_Exit(9);
    return 9;
  });
  CHECK(status.code() == Code::kInternal);
}

}  // namespace memoirfs::daemon
