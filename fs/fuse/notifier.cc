#include "fs/fuse/notifier.h"

#include <fuse_lowlevel.h>

#include <string>

#include "store/base/log.h"
#include "store/base/status.h"

namespace memoirfs::fuse {
namespace {

// Offset -1 means the attributes alone; offset 0 with length 0 every page as well.
constexpr off_t kAttributesOnly = -1;
constexpr off_t kFromStart = 0;

void LogFailure(const char* what, vfs::NodeId node, int result) {
  // ENOENT: the kernel does not know the node. The others: the mount is being taken away.
  const int error = -result;
  if (error == 0 || error == ENOENT || error == ENODEV || error == ENOTCONN || error == EPIPE) {
    return;
  }
  Log(LogLevel::kWarn, "fuse.notify",
      Status::FromErrno(error, std::string(what) + " of node " + std::to_string(node.value) +
                                   " could not be announced to the kernel, which may show the "
                                   "old state for up to a day; mount anew")
          .message());
}

}  // namespace

void Notifier::EntryChanged(vfs::NodeId parent, const std::string& name) {
  fuse_session* session = session_.load();
  if (session == nullptr) return;
  // The name first, positive or negative; then the listing that the kernel keeps as pages of the
  // directory, which invalidating the name alone leaves as it was.
  LogFailure("a name", parent,
             fuse_lowlevel_notify_inval_entry(session, parent.value, name.data(), name.size()));
  LogFailure("a listing", parent,
             fuse_lowlevel_notify_inval_inode(session, parent.value, kFromStart, 0));
}

void Notifier::ContentChanged(vfs::NodeId node) {
  fuse_session* session = session_.load();
  if (session == nullptr) return;
  LogFailure("content", node, fuse_lowlevel_notify_inval_inode(session, node.value, kFromStart, 0));
}

void Notifier::AttributesChanged(vfs::NodeId node) {
  fuse_session* session = session_.load();
  if (session == nullptr) return;
  LogFailure("a change of attributes", node,
             fuse_lowlevel_notify_inval_inode(session, node.value, kAttributesOnly, 0));
}

}  // namespace memoirfs::fuse
