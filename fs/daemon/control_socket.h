#pragma once

// The Unix socket <store>/control.sock: making it, reaching it, and bounded reads and writes on it.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "store/base/bytes.h"
#include "store/base/status.h"
#include "store/base/unique_fd.h"

namespace memoirfs::daemon {

std::string ControlSocketPath(const std::string& store);

// Who is at the other end, as the kernel knows it.
struct Peer {
  uint32_t uid = 0;
  uint32_t gid = 0;
  int32_t pid = 0;
};

// The caller holds the store's lock, so what lies at the socket's name is left over and replaced.
Result<UniqueFd> ListenOnControlSocket(const std::string& store);
// kUnavailable when nobody listens.
Result<UniqueFd> ConnectToControlSocket(const std::string& store);
Result<Peer> PeerOf(int fd);

// What a daemon says to a request that it does not take any more, having done nothing of it:
// kUnavailable, so that who asked tries again, with the next daemon or without one.
Status DaemonEnds();

// A stream of lines with limits. Not thread-safe. Does not own the descriptor.
class LineChannel {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  LineChannel(int fd, std::chrono::milliseconds write_timeout)
      : fd_(fd), write_timeout_(write_timeout) {}

  // Up to '\n', which is left out. kTooLarge beyond `limit`, kUnavailable past the deadline,
  // kNotFound when the other end closed before a whole line came.
  Result<std::string> ReadLine(size_t limit, Deadline deadline);
  Result<Bytes> ReadExactly(size_t size, Deadline deadline);
  // All of it, or a failure; kUnavailable when the other end takes nothing for too long.
  Status Write(ByteView data);
  Status WriteLine(const std::string& line) { return Write(line + "\n"); }

 private:
  Status Fill(Deadline deadline);

  const int fd_;
  const std::chrono::milliseconds write_timeout_;
  std::string buffer_;
};

}  // namespace memoirfs::daemon
