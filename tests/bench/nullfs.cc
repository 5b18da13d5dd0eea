// nullfs MOUNTPOINT: the null file system that benchmarks compare with. The same FUSE code as
// memoirfs serves a view in memory, so that the difference is what recording and verifying cost.
// Ends when it is unmounted, or with SIGINT or SIGTERM.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "fs/fuse/session.h"
#include "tests/support/memory_view.h"

namespace {

memoirfs::Result<std::unique_ptr<memoirfs::vfs::View>> MakeView(memoirfs::vfs::KernelNotifier*) {
  return std::unique_ptr<memoirfs::vfs::View>(std::make_unique<memoirfs::testing::MemoryView>());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: nullfs MOUNTPOINT\n");
    return EXIT_FAILURE;
  }
  // Blocked before any thread is made, so that this one alone takes them.
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&ends, signal);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  memoirfs::fuse::SessionOptions options;
  options.mountpoint = argv[1];
  options.source = "nullfs";
  auto session = memoirfs::fuse::Session::Mount(options, MakeView);
  if (!session.ok()) {
    std::fprintf(stderr, "nullfs: %s\n", session.status().ToString().c_str());
    return EXIT_FAILURE;
  }
  (*session)->OnGone([] { kill(getpid(), SIGUSR1); });
  int signal = 0;
  sigwait(&ends, &signal);
  std::printf("%s\n", (*session)->MetricsJson().c_str());
  return EXIT_SUCCESS;
}
