#include "fs/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "store/base/log.h"
#include "store/base/status.h"
#include "store/base/unique_fd.h"

namespace memoirfs::daemon {
namespace {

Status Send(const std::string& path, std::string_view state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Status::FromErrno(ENAMETOOLONG, path);
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // an abstract one
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Status::FromErrno(errno, "make a socket");
  const ssize_t sent = ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), length);
  return sent < 0 ? Status::FromErrno(errno, "send to " + path) : Status();
}

}  // namespace

void TellServiceManager(std::string_view state) {
  const char* socket = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe)
  if (socket == nullptr || (*socket != '/' && *socket != '@')) return;
  const Status status = Send(socket, state);
  if (!status.ok()) Log(LogLevel::kWarn, "daemon.notify", status.ToString());
}

}  // namespace memoirfs::daemon
