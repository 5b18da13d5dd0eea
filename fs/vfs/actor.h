#pragma once

#include "fs/vfs/vfs.h"
#include "store/chain/record.h"

namespace memoirfs::vfs {

// Who a caller is, with the name that its process gives itself. Reads /proc/<pid>/comm, never
// cmdline: that can wait for a lock of the process, which may wait for us.
chain::Actor ActorOf(const Caller& caller);

}  // namespace memoirfs::vfs
