#include "fs/fuse/reply.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include "fs/fuse/attributes.h"
#include "fs/fuse/channel.h"
#include "store/base/log.h"

namespace memoirfs::fuse {
namespace {

constexpr unsigned long kLongestName = 255;

void Describe(const vfs::Opened& opened, fuse_file_info& info) {
  info.fh = opened.handle.value;
  info.keep_cache = opened.keep_cache ? 1 : 0;
  info.direct_io = opened.direct_io ? 1 : 0;
  // A reader has nothing to commit: its close needs no request.
  info.noflush = (info.flags & O_ACCMODE) == O_RDONLY ? 1 : 0;
}

}  // namespace

Reply::Reply(fuse_req_t request, Op op)
    : request_(request),
      context_(*static_cast<SessionContext*>(fuse_req_userdata(request))),
      op_(op) {}

Reply::~Reply() {
  if (answered_) return;
  Log(LogLevel::kError, Site(), "the operation ended without an answer; the caller gets EIO");
  fuse_reply_err(Take(EIO), EIO);
}

vfs::Caller Reply::caller() const {
  const fuse_ctx* context = fuse_req_ctx(request_);
  return {.uid = context->uid,
          .gid = context->gid,
          .pid = context->pid,
          .umask = context->umask,
          .keeps_privileges = context->uid == 0};
}

vfs::Caller Reply::caller(int flags) const {
  vfs::Caller caller = this->caller();
  if (context_.kill_privileges_told) caller.keeps_privileges = (flags & kKillPrivileges) == 0;
  return caller;
}

fuse_req_t Reply::Take(int error) {
  answered_ = true;
  context_.metrics.Record(op_, error, std::chrono::steady_clock::now() - began_);
  return request_;
}

std::string Reply::Site() const { return std::string("fuse.").append(OpName(op_)); }

Status Reply::Finish(Status status) {
  const int error = status.ToErrno();
  // Other failures are ordinary answers; this one says that something is broken.
  if (error == EIO) Log(LogLevel::kError, Site(), status.ToString());
  if (!answered_) fuse_reply_err(Take(error), error);
  return status;
}

void Reply::Fault(std::string_view what) {
  Log(LogLevel::kError, Site(), std::string("exception: ").append(what));
  if (!answered_) fuse_reply_err(Take(EIO), EIO);
}

Status Reply::Error(int error) {
  fuse_reply_err(Take(error), error);
  return {};
}

Status Reply::Entry(const vfs::Node& node) {
  const fuse_entry_param entry = EntryOf(node);
  fuse_reply_entry(Take(0), &entry);
  return {};
}

Status Reply::NoEntry() {
  const fuse_entry_param entry = MissingEntry();
  fuse_reply_entry(Take(0), &entry);
  return {};
}

Status Reply::Attributes(const vfs::Node& node) {
  const struct stat attributes = StatOf(node);
  fuse_reply_attr(Take(0), &attributes, CacheSeconds(node));
  return {};
}

Status Reply::Link(const std::string& target) {
  fuse_reply_readlink(Take(0), target.c_str());
  return {};
}

void Reply::ReleaseUnclaimed(vfs::HandleId handle) {
  if (Status status = view().Release(handle); !status.ok()) {
    Log(LogLevel::kWarn, Site(), "release after an interrupt: " + status.ToString());
  }
}

Status Reply::Opened(const vfs::Opened& opened, fuse_file_info info) {
  Describe(opened, info);
  if (fuse_reply_open(Take(0), &info) != 0) ReleaseUnclaimed(opened.handle);
  return {};
}

Status Reply::Created(const vfs::View::Created& created, fuse_file_info info) {
  const fuse_entry_param entry = EntryOf(created.node);
  Describe(created.opened, info);
  if (fuse_reply_create(Take(0), &entry, &info) != 0) ReleaseUnclaimed(created.opened.handle);
  return {};
}

Status Reply::Data(ByteView data) {
  fuse_reply_buf(Take(0), data.data(), data.size());
  return {};
}

Status Reply::Written(size_t size) {
  fuse_reply_write(Take(0), size);
  return {};
}

Status Reply::Xattr(ByteView value, size_t room) {
  if (room == 0) {
    fuse_reply_xattr(Take(0), value.size());
    return {};
  }
  return value.size() > room ? Error(ERANGE) : Data(value);
}

Status Reply::FileSystem(const vfs::FileSystemFacts& facts) {
  struct statvfs out {};
  out.f_bsize = facts.block_size;
  out.f_frsize = facts.block_size;
  out.f_blocks = facts.blocks;
  out.f_bfree = facts.available_blocks;
  out.f_bavail = facts.available_blocks;
  out.f_files = facts.files;
  out.f_ffree = facts.available_files;
  out.f_favail = facts.available_files;
  out.f_namemax = kLongestName;
  fuse_reply_statfs(Take(0), &out);
  return {};
}

Status Reply::Offset(uint64_t offset) {
  fuse_reply_lseek(Take(0), static_cast<off_t>(offset));
  return {};
}

}  // namespace memoirfs::fuse
