#pragma once

// What the commands that serve a mount have in common: `mount` and `supervise`.

#include <string>

#include "fs/cli/command_line.h"
#include "fs/daemon/daemon.h"
#include "fs/daemon/daemonize.h"
#include "store/base/status.h"

namespace memoirfs::cli {

struct MountOptions {
  std::string mountpoint;
  std::string agent;  // empty: all of them
  bool allow_other = false;
  bool read_only = false;

  Result<daemon::MountRequest> ToRequest() const;
};

// The argument MOUNTPOINT and the options that fill `options`, which outlives the command line.
void AddMountOptions(Command& command, MountOptions& options);

// For a daemon in the foreground: it logs to stderr, and writes nothing to a store that it cannot
// write and is to serve read-only.
daemon::DaemonOptions ForegroundOptions(const std::string& store,
                                        const daemon::MountRequest& request);

// Refuses a store that a daemon serves already, for who is to serve it itself.
Status CheckFreeToServe(const std::string& store);

// Waits for who has the store only for a moment: a daemon that ends, a command that reads.
Result<std::unique_ptr<daemon::Daemon>> StartPatiently(const daemon::DaemonOptions& options);

// The main program of a daemon in a process of its own, until it ends. With `first`, it mounts that
// before it is ready.
int Serve(const daemon::DaemonOptions& options, const daemon::MountRequest* first,
          daemon::ReadySignal ready);

}  // namespace memoirfs::cli
