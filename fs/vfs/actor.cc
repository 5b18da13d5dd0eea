#include "fs/vfs/actor.h"

#include <fstream>
#include <string>

#include "store/base/file_name.h"

namespace memoirfs::vfs {

chain::Actor ActorOf(const Caller& caller) {
  chain::Actor actor{caller.uid, caller.gid, caller.pid, {}};
  if (caller.pid <= 0) return actor;
  std::ifstream file("/proc/" + std::to_string(caller.pid) + "/comm");
  std::string comm;
  std::getline(file, comm);  // the kernel keeps 15 bytes of it
  actor.comm = EscapeInvalidUtf8(comm);
  return actor;
}

}  // namespace memoirfs::vfs
