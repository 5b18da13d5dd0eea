#pragma once

#include <atomic>

#include "fs/vfs/vfs.h"

struct fuse_session;

namespace memoirfs::fuse {

// Tells the kernel of one session what to forget. Before Start nothing is sent: the kernel has
// cached nothing yet. Whoever calls it stops before the libfuse session is destroyed: the session
// destroys its view first. Thread-safe.
//
// Sending waits until requests that hold the pages concerned are answered, so it must never happen
// on a thread that serves requests, nor with a lock held that a request needs.
class Notifier : public vfs::KernelNotifier {
 public:
  void Start(fuse_session* session) { session_.store(session); }

  void EntryChanged(vfs::NodeId parent, const std::string& name) override;
  void ContentChanged(vfs::NodeId node) override;
  void AttributesChanged(vfs::NodeId node) override;

 private:
  std::atomic<fuse_session*> session_{nullptr};
};

}  // namespace memoirfs::fuse
