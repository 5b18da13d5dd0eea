#include "fs/daemon/control_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace memoirfs::daemon {
namespace {

constexpr char kSocketName[] = "control.sock";
constexpr int kBacklog = 32;

// A sockaddr_un holds 107 bytes and a store's path may be longer: the socket is named through a
// descriptor of the store's directory.
struct Address {
  UniqueFd directory;
  sockaddr_un name{};
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Result<Address> AddressIn(const std::string& store) {
  Address address;
  address.directory =
      UniqueFd(::open(store.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!address.directory.valid()) {
    return Status::FromErrno(errno, "open store directory " + store);
  }
  const std::string path =
      "/proc/self/fd/" + std::to_string(address.directory.get()) + "/" + kSocketName;
  address.name.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.name.sun_path);
  return address;
}

Result<UniqueFd> NewSocket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Status::FromErrno(errno, "make a Unix socket");
  return fd;
}

// Waits for `events`; kUnavailable past the deadline.
Status WaitFor(int fd, short events, LineChannel::Deadline deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() < 0) return Status(Code::kUnavailable, "the other end is too slow");
    pollfd entry{fd, events, 0};
    const int timeout = static_cast<int>(std::min<int64_t>(left.count() + 1, 60'000));
    const int ready = ::poll(&entry, 1, timeout);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Status::FromErrno(errno, "poll the control socket");
  }
}

}  // namespace

std::string ControlSocketPath(const std::string& store) { return store + "/" + kSocketName; }

Result<UniqueFd> ListenOnControlSocket(const std::string& store) {
  ASSIGN_OR_RETURN(const Address address, AddressIn(store));
  ASSIGN_OR_RETURN(UniqueFd fd, NewSocket());
  const std::string shown = ControlSocketPath(store);
  if (::unlinkat(address.directory.get(), kSocketName, 0) != 0 && errno != ENOENT) {
    return Status::FromErrno(errno, "remove the old " + shown);
  }
  // The mode of a socket is that of its descriptor's inode, less the umask: set before the bind,
  // so that it is never wider.
  if (::fchmod(fd.get(), 0600) != 0 || ::bind(fd.get(), address.get(), sizeof(address.name)) != 0 ||
      ::fchmodat(address.directory.get(), kSocketName, 0600, 0) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return Status::FromErrno(errno, "listen on " + shown);
  }
  return fd;
}

Result<UniqueFd> ConnectToControlSocket(const std::string& store) {
  ASSIGN_OR_RETURN(const Address address, AddressIn(store));
  ASSIGN_OR_RETURN(UniqueFd fd, NewSocket());
  if (::connect(fd.get(), address.get(), sizeof(address.name)) == 0) return fd;
  const int err = errno;
  const bool nobody = err == ENOENT || err == ECONNREFUSED;
  const Status status = Status::FromErrno(err, "connect to " + ControlSocketPath(store));
  return nobody ? Status(Code::kUnavailable, status.message()) : status;
}

Result<Peer> PeerOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return Status::FromErrno(errno, "ask who is at the control socket");
  }
  return Peer{credentials.uid, credentials.gid, credentials.pid};
}

Status DaemonEnds() { return {Code::kUnavailable, "the daemon is ending. Try again"}; }

Status LineChannel::Fill(Deadline deadline) {
  TRY(WaitFor(fd_, POLLIN, deadline));
  std::array<char, 64 * 1024> piece;  // NOLINT: filled by recv
  const ssize_t n = ::recv(fd_, piece.data(), piece.size(), MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno == ECONNRESET)) {
    return Status(Code::kNotFound, "the other end closed the connection");
  }
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return {};
    return Status::FromErrno(errno, "read from the control socket");
  }
  buffer_.append(piece.data(), static_cast<size_t>(n));
  return {};
}

Result<std::string> LineChannel::ReadLine(size_t limit, Deadline deadline) {
  size_t searched = 0;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos && end <= limit) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    searched = buffer_.size();
    if (searched > limit || end != std::string::npos) {
      return Status(Code::kTooLarge, "a line on the control socket is too long");
    }
    TRY(Fill(deadline));
  }
}

Result<Bytes> LineChannel::ReadExactly(size_t size, Deadline deadline) {
  while (buffer_.size() < size) TRY(Fill(deadline));
  Bytes bytes = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return bytes;
}

Status LineChannel::Write(ByteView data) {
  while (!data.empty()) {
    TRY(WaitFor(fd_, POLLOUT, std::chrono::steady_clock::now() + write_timeout_));
    const ssize_t n = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      return Status::FromErrno(errno, "write to the control socket");
    }
    if (n > 0) data.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace memoirfs::daemon
