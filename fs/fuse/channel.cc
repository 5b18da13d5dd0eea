// Two features of the kernel are not in libfuse 3.14, and are added to its answer to INIT where the
// kernel offers them:
//
// PARALLEL_DIROPS: look-ups in one directory at once. libfuse takes the wish, but does not pass it
// on.
//
// HANDLE_KILLPRIV_V2: who writes, truncates or changes an owner takes suid and sgid away here, and
// the kernel need not ask before each write what there is to take. It says with each request
// whether the caller may keep the bits, in fields that libfuse does not hand on. So that is copied
// into the open flags, which it does.

#include "fs/fuse/channel.h"

#include <linux/fuse.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fs/fuse/reply.h"

namespace memoirfs::fuse {
namespace {

constexpr uint32_t kAddedFeatures = FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2;

// Reads and writes back the structure behind the header of a request, where all of it is there.
template <typename T, typename Edit>
void EditRequest(char* message, size_t size, Edit edit) {
  T body{};
  if (size < sizeof(fuse_in_header) + sizeof(body)) return;
  std::memcpy(&body, message + sizeof(fuse_in_header), sizeof(body));
  edit(body);
  std::memcpy(message + sizeof(fuse_in_header), &body, sizeof(body));
}

// OPEN and CREATE.
template <typename T>
void CopyOpenFlag(T& body) {
  if ((body.open_flags & FUSE_OPEN_KILL_SUIDGID) != 0) body.flags |= kKillPrivileges;
}

void CompleteRequest(SessionContext& context, char* message, size_t size) {
  fuse_in_header header{};
  if (size < sizeof(header)) return;
  std::memcpy(&header, message, sizeof(header));
  switch (header.opcode) {
    case FUSE_INIT:
      return EditRequest<fuse_init_in>(message, size, [&](const fuse_init_in& init) {
        context.added_features = init.flags & kAddedFeatures;
        context.init_unique = header.unique;
      });
    case FUSE_OPEN:
      return EditRequest<fuse_open_in>(message, size, CopyOpenFlag<fuse_open_in>);
    case FUSE_CREATE:
      return EditRequest<fuse_create_in>(message, size, CopyOpenFlag<fuse_create_in>);
    case FUSE_WRITE:
      return EditRequest<fuse_write_in>(message, size, [](fuse_write_in& write) {
        if ((write.write_flags & FUSE_WRITE_KILL_SUIDGID) != 0) write.flags |= kKillPrivileges;
      });
    default:
      return;
  }
}

// The answer to INIT: a header and this structure.
void CompleteInit(SessionContext& context, const iovec* parts, int count) {
  if (count != 2 || parts[1].iov_len < FUSE_COMPAT_22_INIT_OUT_SIZE) return;
  static_cast<fuse_init_out*>(parts[1].iov_base)->flags |= context.added_features;
  context.kill_privileges_told = (context.added_features & FUSE_HANDLE_KILLPRIV_V2) != 0;
}

// Notifications, which may go out before it, answer nothing: their number is 0.
bool AnswersInit(const SessionContext& context, const iovec* parts, int count) {
  const uint64_t init = context.init_unique.load(std::memory_order_relaxed);
  fuse_out_header header{};
  if (init == 0 || count < 1 || parts[0].iov_len < sizeof(header)) return false;
  std::memcpy(&header, parts[0].iov_base, sizeof(header));
  return header.unique == init;
}

template <typename Send>
ssize_t SendMessage(void* userdata, iovec* parts, int count, Send send) {
  auto& context = *static_cast<SessionContext*>(userdata);
  if (!AnswersInit(context, parts, count)) return send();
  context.init_unique = 0;
  CompleteInit(context, parts, count);
  const ssize_t sent = send();
  if (sent > 0) context.on_serving();
  return sent;
}

ssize_t ReadDevice(int fd, void* buffer, size_t size, void* userdata) {
  const ssize_t got = ::read(fd, buffer, size);
  if (got > 0) {
    CompleteRequest(*static_cast<SessionContext*>(userdata), static_cast<char*>(buffer),
                    static_cast<size_t>(got));
  }
  return got;
}

ssize_t WriteDevice(int fd, iovec* parts, int count, void* userdata) {
  return SendMessage(userdata, parts, count, [&] { return ::writev(fd, parts, count); });
}

// The end of the connection, orderly or not, means what ENODEV means on the device.
ssize_t ReadSocket(int fd, void* buffer, size_t size, void* userdata) {
  const ssize_t got = ::recv(fd, buffer, size, 0);
  if (got > 0) {
    CompleteRequest(*static_cast<SessionContext*>(userdata), static_cast<char*>(buffer),
                    static_cast<size_t>(got));
  }
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
