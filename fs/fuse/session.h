#pragma once

// One FUSE mount: a View served by libfuse's low-level interface on threads of its own. This
// folder is the only user of libfuse. Threads start in Mount and Attach, so a daemon forks before.
// The threads block every signal but SIGRTMAX-1, which this folder uses to end a session.

#include <functional>
#include <memory>
#include <string>

#include "fs/vfs/vfs.h"
#include "store/base/status.h"

namespace memoirfs::fuse {

struct SessionOptions {
  std::string mountpoint;    // an existing directory
  std::string source;        // what /proc/mounts shows first
  bool allow_other = false;  // other users too; the kernel checks permissions in either case
  bool read_only = false;
  unsigned threads = 8;  // at most; 4 to 16 make sense
};

// Makes the view that the session serves; `notifier` is the session's.
using ViewFactory =
    std::function<Result<std::unique_ptr<vfs::View>>(vfs::KernelNotifier* notifier)>;

class Session {
 public:
  // Mounts and answers: when this returns, requests are served. Failures say what to do (no
  // /dev/fuse, fusermount3 missing, not permitted, allow_other refused by /etc/fuse.conf).
  static Result<std::unique_ptr<Session>> Mount(const SessionOptions& options,
                                                const ViewFactory& make_view);

  // The same over a socket whose other end plays the kernel: for tests, without mount or root.
  // Takes `fd`.
  static Result<std::unique_ptr<Session>> Attach(const SessionOptions& options,
                                                 const ViewFactory& make_view, int fd);

  // Unmounts when nobody did, and joins every thread. Files still open on the mount get ENOTCONN
  // from then on. Waits for requests that the view is working on. Does not commit: the owner does,
  // before.
  virtual ~Session() = default;

  // Takes the mount away; kBusy where files are open and `lazy` is not set.
  virtual Status Unmount(bool lazy) = 0;
  // Called once, on a thread of the session, when the mount is gone, whoever took it away. Set it
  // before it can matter; called at once, on the caller's thread, when the mount is gone already.
  // The callback must not destroy the session: that joins the thread it runs on.
  virtual void OnGone(std::function<void()> callback) = 0;

  virtual const SessionOptions& options() const = 0;
  virtual vfs::View& view() = 0;

  // Counters and latencies a request type, as a JSON object: for status.
  virtual std::string MetricsJson() const = 0;
};

}  // namespace memoirfs::fuse
