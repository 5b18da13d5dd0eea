#include "fs/fuse/channel.h"

#include <linux/fuse.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "fs/fuse/reply.h"

namespace memoirfs::fuse {
namespace {

// The answer to INIT: a header and this structure.
void CompleteInit(const SessionContext& context, const iovec* parts, int count) {
  if (!context.parallel_dirops || count != 2 || parts[1].iov_len < FUSE_COMPAT_22_INIT_OUT_SIZE) {
    return;
  }
  static_cast<fuse_init_out*>(parts[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS;
}

// Sends a message with `send`. The first one is the answer to INIT.
template <typename Send>
ssize_t SendMessage(void* userdata, iovec* parts, int count, Send send) {
  auto& context = *static_cast<SessionContext*>(userdata);
  if (context.init_answered.load(std::memory_order_relaxed)) return send();
  if (context.init_answered.exchange(true)) return send();
  CompleteInit(context, parts, count);
  const ssize_t sent = send();
  if (sent > 0) context.on_serving();
  return sent;
}

ssize_t ReadDevice(int fd, void* buffer, size_t size, void*) { return ::read(fd, buffer, size); }

ssize_t WriteDevice(int fd, iovec* parts, int count, void* userdata) {
  return SendMessage(userdata, parts, count, [&] { return ::writev(fd, parts, count); });
}

// The end of the connection, orderly or not, means what ENODEV means on the device.
ssize_t ReadSocket(int fd, void* buffer, size_t size, void*) {
  const ssize_t got = ::recv(fd, buffer, size, 0);
  if (got > 0 || (got < 0 && errno != ECONNRESET)) return got;
  errno = ENODEV;
  return -1;
}

ssize_t WriteSocket(int fd, iovec* parts, int count, void* userdata) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(count);
  return SendMessage(userdata, parts, count, [&] { return ::sendmsg(fd, &message, MSG_NOSIGNAL); });
}

constexpr fuse_custom_io kDeviceIo = {
    .writev = WriteDevice, .read = ReadDevice, .splice_receive = nullptr, .splice_send = nullptr};
constexpr fuse_custom_io kSocketIo = {
    .writev = WriteSocket, .read = ReadSocket, .splice_receive = nullptr, .splice_send = nullptr};

}  // namespace

const fuse_custom_io& DeviceIo() { return kDeviceIo; }
const fuse_custom_io& SocketIo() { return kSocketIo; }

}  // namespace memoirfs::fuse
