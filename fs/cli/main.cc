#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <exception>

#include "fs/cli/command_line.h"

namespace {

using memoirfs::Code;
using memoirfs::Status;
using memoirfs::cli::CommandLine;
using memoirfs::cli::Invocation;
using memoirfs::cli::Output;

// Parses and, when that went well, runs.
int Main(int argc, char** argv) {
  CommandLine command_line;
  if (const auto exit_code = command_line.Parse({argv + 1, argv + argc})) return *exit_code;
  const Invocation& invocation = command_line.invocation();
  const Output output(invocation.json);
  const int code = invocation.run(invocation, output);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return output.Fail("stdout", Status::FromErrno(errno, "write"));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  ::umask(077);
  ::signal(SIGCHLD, SIG_DFL);  // ignored, as some parents leave it, it hides how fusermount3 ended
  ::signal(SIGPIPE, SIG_IGN);  // a pager that is left ends us by a failed write
  ::signal(SIGXFSZ, SIG_IGN);  // so does a file that `ulimit -f` keeps small
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    return Output(false).Fail("internal error", Status(Code::kInternal, error.what()));
  }
}
