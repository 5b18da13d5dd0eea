#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <exception>

#include "fs/cli/commands.h"

namespace {

using memoirfs::Code;
using memoirfs::Status;
using memoirfs::cli::Invocation;
using memoirfs::cli::Output;

// Parses and, when that went well, runs.
int Main(int argc, char** argv) {
  Invocation invocation;
  const auto app = memoirfs::cli::MakeApplication(invocation);
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app->exit(error) == 0 ? memoirfs::cli::kSuccess : memoirfs::cli::kUsage;
  }
  const Output output(invocation.json);
  const int code = invocation.run(invocation, output);
  if (std::fflush(stdout) != 0) return output.Fail("stdout", Status::FromErrno(errno, "write"));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);  // a pager that is left ends us by a failed write
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    return Output(false).Fail("internal error", Status(Code::kInternal, error.what()));
  }
}
