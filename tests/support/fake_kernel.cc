#include "tests/support/fake_kernel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace memoirfs::testing {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr size_t kLargestMessage = (1U << 20) + 4096;
constexpr size_t kEntryAlignment = 8;

std::string Joined(std::string_view first, std::string_view second) {
  return std::string(first).append(second);
}

std::string Name(std::string_view name) { return std::string(name).append(1, '\0'); }

size_t AlignedSize(size_t size) {
  return (size + kEntryAlignment - 1) / kEntryAlignment * kEntryAlignment;
}

}  // namespace

void FakeKernel::Answer::CopyFrom(void* to, size_t size) const {
  if (body.size() < size) throw std::runtime_error("the answer is shorter than its structure");
  std::memcpy(to, body.data(), size);
}

FakeKernel::FakeKernel(uint32_t capabilities) {
  // Datagrams, as the device: one read is one request.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  kernel_end_ = ends[0];
  session_end_ = ends[1];
  fuse_init_in init{};
  init.major = FUSE_KERNEL_VERSION;
  init.minor = FUSE_KERNEL_MINOR_VERSION;
  init.max_readahead = 128 * 1024;
  init.flags = capabilities;
  init_unique_ = Send(FUSE_INIT, 0, Raw(init));
}

FakeKernel::~FakeKernel() {
  Close();
  if (session_end_ >= 0) ::close(session_end_);
}

void FakeKernel::Close() {
  if (kernel_end_ >= 0) ::close(std::exchange(kernel_end_, -1));
}

const fuse_init_out& FakeKernel::init() {
  if (!has_init_) {
    init_ = Wait(init_unique_).As<fuse_init_out>();
    has_init_ = true;
  }
  return init_;
}

void FakeKernel::SendBytes(std::string_view bytes) {
  if (::send(kernel_end_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
    throw std::system_error(errno, std::generic_category(), "sending a request");
  }
}

uint64_t FakeKernel::Send(uint32_t opcode, uint64_t node, std::string_view body) {
  fuse_in_header header{};
  header.len = static_cast<uint32_t>(sizeof(header) + body.size());
  header.opcode = opcode;
  header.unique = next_unique_;
  header.nodeid = node;
  header.uid = credentials_.uid;
  header.gid = credentials_.gid;
  header.pid = credentials_.pid;
  next_unique_ += 2;
  SendBytes(Joined(Raw(header), body));
  return header.unique;
}

void FakeKernel::ReadMessage() {
  pollfd ready{.fd = kernel_end_, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, kPatienceMs) != 1) throw std::runtime_error("no answer in ten seconds");
  std::string message(kLargestMessage, '\0');
  const ssize_t got = ::recv(kernel_end_, message.data(), message.size(), 0);
  if (got < static_cast<ssize_t>(sizeof(fuse_out_header))) {
    throw std::runtime_error("the session closed the socket or sent less than a header");
  }
  message.resize(static_cast<size_t>(got));
  fuse_out_header header{};
  std::memcpy(&header, message.data(), sizeof(header));
  if (header.len != message.size()) throw std::runtime_error("the header's length is wrong");
  std::string body = message.substr(sizeof(header));
  if (header.unique == 0) {
    notifications_.push_back({header.error, std::move(body)});
  } else if (!answers_.emplace(header.unique, Answer{-header.error, std::move(body)}).second) {
    throw std::runtime_error("a request was answered twice");
  }
}

FakeKernel::Answer FakeKernel::Wait(uint64_t unique) {
  while (!answers_.contains(unique)) ReadMessage();
  return std::move(answers_.extract(unique).mapped());
}

FakeKernel::Notification FakeKernel::WaitNotification() {
  while (notifications_.empty()) ReadMessage();
  Notification first = std::move(notifications_.front());
  notifications_.pop_front();
  return first;
}

bool FakeKernel::HasUnread() {
  pollfd ready{.fd = kernel_end_, .events = POLLIN, .revents = 0};
  return !answers_.empty() || !notifications_.empty() || ::poll(&ready, 1, 0) == 1;
}

FakeKernel::Answer FakeKernel::Lookup(uint64_t parent, std::string_view name) {
  return Ask(FUSE_LOOKUP, parent, Name(name));
}

FakeKernel::Answer FakeKernel::GetAttr(uint64_t node) {
  return Ask(FUSE_GETATTR, node, Raw(fuse_getattr_in{}));
}

FakeKernel::Answer FakeKernel::MakeDirectory(uint64_t parent, std::string_view name,
                                             uint32_t mode) {
  fuse_mkdir_in in{};
  in.mode = mode;
  return Ask(FUSE_MKDIR, parent, Joined(Raw(in), Name(name)));
}

FakeKernel::Answer FakeKernel::Create(uint64_t parent, std::string_view name, int flags,
                                      uint32_t mode) {
  fuse_create_in in{};
  in.flags = static_cast<uint32_t>(flags);
  in.mode = mode;
  return Ask(FUSE_CREATE, parent, Joined(Raw(in), Name(name)));
}

FakeKernel::Answer FakeKernel::Open(uint64_t node, int flags) {
  fuse_open_in in{};
  in.flags = static_cast<uint32_t>(flags);
  return Ask(FUSE_OPEN, node, Raw(in));
}

FakeKernel::Answer FakeKernel::Read(uint64_t node, uint64_t handle, uint64_t offset,
                                    uint32_t size) {
  fuse_read_in in{};
  in.fh = handle;
  in.offset = offset;
  in.size = size;
  return Ask(FUSE_READ, node, Raw(in));
}

FakeKernel::Answer FakeKernel::Write(uint64_t node, uint64_t handle, uint64_t offset,
                                     std::string_view data, uint32_t write_flags) {
  fuse_write_in in{};
  in.fh = handle;
  in.offset = offset;
  in.size = static_cast<uint32_t>(data.size());
  in.write_flags = write_flags;
  return Ask(FUSE_WRITE, node, Joined(Raw(in), data));
}

FakeKernel::Answer FakeKernel::Flush(uint64_t node, uint64_t handle) {
  fuse_flush_in in{};
  in.fh = handle;
  return Ask(FUSE_FLUSH, node, Raw(in));
}

FakeKernel::Answer FakeKernel::Release(uint64_t node, uint64_t handle) {
  fuse_release_in in{};
  in.fh = handle;
  return Ask(FUSE_RELEASE, node, Raw(in));
}

FakeKernel::Answer FakeKernel::Rename(uint64_t parent, std::string_view name, uint64_t new_parent,
                                      std::string_view new_name, uint32_t flags) {
  fuse_rename2_in in{};
  in.newdir = new_parent;
  in.flags = flags;
  return Ask(FUSE_RENAME2, parent, Joined(Raw(in), Name(name) + Name(new_name)));
}

FakeKernel::Answer FakeKernel::GetXattr(uint64_t node, std::string_view name, uint32_t size) {
  fuse_getxattr_in in{};
  in.size = size;
  return Ask(FUSE_GETXATTR, node, Joined(Raw(in), Name(name)));
}

FakeKernel::Answer FakeKernel::SetXattr(uint64_t node, std::string_view name,
                                        std::string_view value, int flags) {
  fuse_setxattr_in in{};
  in.size = static_cast<uint32_t>(value.size());
  in.flags = static_cast<uint32_t>(flags);
  // The short form of the structure, without FUSE_SETXATTR_EXT.
  const std::string_view head = Raw(in).substr(0, FUSE_COMPAT_SETXATTR_IN_SIZE);
  return Ask(FUSE_SETXATTR, node, Joined(head, Name(name) + std::string(value)));
}

FakeKernel::Answer FakeKernel::ReadDirectory(uint64_t node, uint64_t offset, uint32_t size,
                                             bool plus) {
  fuse_read_in in{};
  in.offset = offset;
  in.size = size;
  return Ask(plus ? FUSE_READDIRPLUS : FUSE_READDIR, node, Raw(in));
}

std::vector<FakeKernel::Entry> FakeKernel::ParseListing(const Answer& answer, bool plus) {
  std::vector<Entry> entries;
  const size_t prefix = plus ? sizeof(fuse_entry_out) : 0;
  for (std::string_view rest = answer.body; !rest.empty();) {
    Entry entry;
    fuse_dirent dirent{};
    if (rest.size() < prefix + FUSE_NAME_OFFSET) throw std::runtime_error("a truncated entry");
    if (plus) std::memcpy(&entry.found, rest.data(), sizeof(entry.found));
    std::memcpy(&dirent, rest.data() + prefix, FUSE_NAME_OFFSET);
    const size_t size = prefix + AlignedSize(FUSE_NAME_OFFSET + dirent.namelen);
    if (rest.size() < size) throw std::runtime_error("a truncated name");
    entry.name = rest.substr(prefix + FUSE_NAME_OFFSET, dirent.namelen);
    entry.ino = dirent.ino;
    entry.offset = dirent.off;
    entry.type = dirent.type;
    entries.push_back(std::move(entry));
    rest.remove_prefix(size);
  }
  return entries;
}

}  // namespace memoirfs::testing
