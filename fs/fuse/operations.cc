// The trampolines: each decodes one request, calls the view and answers once, through Serve.
//
// Left out on purpose: access (default_permissions lets the kernel check), flock, getlk and setlk
// (the kernel then keeps locks itself, which is right on one machine), poll, bmap, and write_buf
// (data is hashed, so it must be in memory). What is not in the table is answered with ENOSYS by
// libfuse, and the kernel does not ask again.

#include "fs/fuse/operations.h"

#include <algorithm>
#include <string>

#include "fs/fuse/attributes.h"
#include "fs/fuse/channel.h"
#include "fs/fuse/reply.h"

namespace memoirfs::fuse {
namespace {

using vfs::HandleId;
using vfs::Node;
using vfs::NodeId;

constexpr unsigned kBackgroundRequests = 64;
constexpr unsigned kRenameNoReplace = 1U << 0;  // RENAME_NOREPLACE of renameat2(2)
constexpr unsigned kRenameExchange = 1U << 1;   // RENAME_EXCHANGE

// Wanted where the kernel offers them; everything else that libfuse turns on by itself is off:
// AUTO_INVAL_DATA (it takes precedence over EXPLICIT_INVAL_DATA and drops pages whenever a
// modification time changes), splicing (the bytes sent are those that were verified),
// HANDLE_KILLPRIV (its second version is added in channel.cc), EXPORT_SUPPORT, POSIX_ACL, the
// writeback cache, and remote locks.
constexpr unsigned kWanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC |
                             FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
                             FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_EXPLICIT_INVAL_DATA |
                             FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_NO_OPENDIR_SUPPORT;

HandleId HandleOf(const fuse_file_info* info) { return HandleId(info->fh); }

int OpenFlagsOf(const fuse_file_info& info) { return info.flags & ~kKillPrivileges; }

void Init(void*, fuse_conn_info* connection) {
  connection->want = connection->capable & kWanted;
  connection->max_write = kLargestRequest;
  // max_readahead stays what the kernel offers: it takes no more here.
  connection->max_background = kBackgroundRequests;
  connection->congestion_threshold = kBackgroundRequests * 3 / 4;
  connection->time_gran = 1;
}

void Lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Serve(request, Op::kLookup, [&](Reply& reply) -> Status {
    const Result<Node> found = reply.view().Lookup(NodeId(parent), name);
    if (found.code() == Code::kNotFound) return reply.NoEntry();
    TRY(found);
    return reply.Entry(*found);
  });
}

// Node ids are persistent numbers: nothing in memory stands for what the kernel has merely looked
// up, so there is nothing to forget and no count to keep.
void Forget(fuse_req_t request, fuse_ino_t, uint64_t) { fuse_reply_none(request); }
void ForgetMany(fuse_req_t request, size_t, fuse_forget_data*) { fuse_reply_none(request); }

void GetAttr(fuse_req_t request, fuse_ino_t node, fuse_file_info*) {
  Serve(request, Op::kGetAttr, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const Node found, reply.view().GetAttributes(NodeId(node)));
    return reply.Attributes(found);
  });
}

void SetAttr(fuse_req_t request, fuse_ino_t node, struct stat* wanted, int to_set,
             fuse_file_info* info) {
  Serve(request, Op::kSetAttr, [&](Reply& reply) -> Status {
    const auto handle = info ? std::optional(HandleOf(info)) : std::nullopt;
    ASSIGN_OR_RETURN(const Node changed,
                     reply.view().SetAttributes(NodeId(node), ChangeOf(*wanted, to_set), handle,
                                                reply.caller()));
    return reply.Attributes(changed);
  });
}

void ReadLink(fuse_req_t request, fuse_ino_t node) {
  Serve(request, Op::kReadLink, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const std::string target, reply.view().ReadLink(NodeId(node)));
    return reply.Link(target);
  });
}

void MakeNode(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  Serve(request, Op::kMakeNode, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const Node made,
                     reply.view().MakeNode(NodeId(parent), name, mode, rdev, reply.caller()));
    return reply.Entry(made);
  });
}

void MakeDirectory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  Serve(request, Op::kMakeDirectory, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const Node made, reply.view().MakeDirectory(NodeId(parent), name,
                                                                 mode | S_IFDIR, reply.caller()));
    return reply.Entry(made);
  });
}

void Unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Serve(request, Op::kUnlink, [&](Reply& reply) {
    return reply.Finish(reply.view().Unlink(NodeId(parent), name, reply.caller()));
  });
}

void RemoveDirectory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Serve(request, Op::kRemoveDirectory, [&](Reply& reply) {
    return reply.Finish(reply.view().RemoveDirectory(NodeId(parent), name, reply.caller()));
  });
}

void Symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  Serve(request, Op::kSymlink, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const Node made,
                     reply.view().MakeSymlink(NodeId(parent), name, target, reply.caller()));
    return reply.Entry(made);
  });
}

Result<volume::RenameMode> RenameModeOf(unsigned flags) {
  switch (flags) {
    case 0:
      return volume::RenameMode::kReplace;
    case kRenameNoReplace:
      return volume::RenameMode::kNoReplace;
    case kRenameExchange:
      return volume::RenameMode::kExchange;
    default:  // RENAME_WHITEOUT, and both at once
      return Status(Code::kInvalidArgument, "rename: these flags are not supported");
  }
}

void Rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  Serve(request, Op::kRename, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const volume::RenameMode mode, RenameModeOf(flags));
    return reply.Finish(reply.view().Rename(NodeId(parent), name, NodeId(new_parent), new_name,
                                            mode, reply.caller()));
  });
}

void Link(fuse_req_t request, fuse_ino_t node, fuse_ino_t new_parent, const char* new_name) {
  Serve(request, Op::kLink, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const Node linked, reply.view().MakeLink(NodeId(node), NodeId(new_parent),
                                                              new_name, reply.caller()));
    return reply.Entry(linked);
  });
}

void Create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* info) {
  Serve(request, Op::kCreate, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const vfs::View::Created created,
                     reply.view().Create(NodeId(parent), name, mode, OpenFlagsOf(*info),
                                         reply.caller(info->flags)));
    return reply.Created(created, *info);
  });
}

void Open(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  Serve(request, Op::kOpen, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const vfs::Opened opened, reply.view().Open(NodeId(node), OpenFlagsOf(*info),
                                                                 reply.caller(info->flags)));
    return reply.Opened(opened, *info);
  });
}

void Read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info* info) {
  Serve(request, Op::kRead, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const Bytes data,
                     reply.view().Read(HandleOf(info), static_cast<uint64_t>(offset), size));
    return reply.Data(data);
  });
}

void Write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t offset,
           fuse_file_info* info) {
  Serve(request, Op::kWrite, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(
        const size_t written,
        reply.view().Write(HandleOf(info), static_cast<uint64_t>(offset), ByteView(data, size),
                           info->writepage != 0, reply.caller(info->flags)));
    return reply.Written(written);
  });
}

void Flush(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  Serve(request, Op::kFlush,
        [&](Reply& reply) { return reply.Finish(reply.view().Flush(HandleOf(info))); });
}

void Release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  Serve(request, Op::kRelease,
        [&](Reply& reply) { return reply.Finish(reply.view().Release(HandleOf(info))); });
}

void Fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info* info) {
  Serve(request, Op::kFsync,
        [&](Reply& reply) { return reply.Finish(reply.view().Fsync(HandleOf(info))); });
}

// ENOSYS, once for the whole mount: the kernel then opens directories without asking, keeps their
// listings, and lists them without a handle. A kernel that does not know this gets a plain yes.
void OpenDirectory(fuse_req_t request, fuse_ino_t, fuse_file_info*) {
  Serve(request, Op::kOpenDirectory, [&](Reply& reply) { return reply.Error(ENOSYS); });
}

using AddToListing = size_t (*)(fuse_req_t, char*, size_t, const vfs::DirectoryEntry&);

size_t AddPlain(fuse_req_t request, char* room, size_t size, const vfs::DirectoryEntry& entry) {
  const struct stat attributes = StatOf(entry.node);
  return fuse_add_direntry(request, room, size, entry.name.c_str(), &attributes,
                           static_cast<off_t>(entry.next_offset));
}

size_t AddPlus(fuse_req_t request, char* room, size_t size, const vfs::DirectoryEntry& entry) {
  fuse_entry_param found = EntryOf(entry.node);
  // The kernel counts a look-up for each entry but these two, which it knows already.
  if (entry.name == "." || entry.name == "..") found.ino = 0;
  return fuse_add_direntry_plus(request, room, size, entry.name.c_str(), &found,
                                static_cast<off_t>(entry.next_offset));
}

void List(fuse_req_t request, Op op, NodeId node, size_t size, off_t offset, AddToListing add) {
  Serve(request, op, [&](Reply& reply) -> Status {
    Bytes listing(std::min<size_t>(size, kLargestRequest), '\0');
    size_t used = 0;
    TRY(reply.view().ReadDirectory(
        node, static_cast<uint64_t>(offset), op == Op::kReadDirectoryPlus,
        [&](const vfs::DirectoryEntry& entry) {
          const size_t room = listing.size() - used;
          const size_t needed = add(request, listing.data() + used, room, entry);
          if (needed > room) return false;
          used += needed;
          return true;
        }));
    return reply.Data(ByteView(listing).substr(0, used));
  });
}

void ReadDirectory(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                   fuse_file_info*) {
  List(request, Op::kReadDirectory, NodeId(node), size, offset, AddPlain);
}

void ReadDirectoryPlus(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                       fuse_file_info*) {
  List(request, Op::kReadDirectoryPlus, NodeId(node), size, offset, AddPlus);
}

void FsyncDirectory(fuse_req_t request, fuse_ino_t node, int, fuse_file_info*) {
  Serve(request, Op::kFsyncDirectory,
        [&](Reply& reply) { return reply.Finish(reply.view().FsyncDirectory(NodeId(node))); });
}

void GetXattr(fuse_req_t request, fuse_ino_t node, const char* name, size_t size) {
  Serve(request, Op::kGetXattr, [&](Reply& reply) -> Status {
    // Asked at the first write to an inode of which attributes came since the kernel last asked.
    // Only ENOSYS would end that, and all other attributes with it (fs/README.md, what FUSE cannot
    // do here). So it is answered before anything is looked up.
    if (ByteView(name) == "security.capability") return reply.Error(EOPNOTSUPP);
    ASSIGN_OR_RETURN(const Bytes value, reply.view().GetXattr(NodeId(node), name));
    return reply.Xattr(value, size);
  });
}

void ListXattrs(fuse_req_t request, fuse_ino_t node, size_t size) {
  Serve(request, Op::kListXattr, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, reply.view().ListXattrs(NodeId(node)));
    Bytes list;
    for (const std::string& name : names) list.append(name).push_back('\0');
    return reply.Xattr(list, size);
  });
}

void SetXattr(fuse_req_t request, fuse_ino_t node, const char* name, const char* value, size_t size,
              int flags) {
  Serve(request, Op::kSetXattr, [&](Reply& reply) {
    return reply.Finish(
        reply.view().SetXattr(NodeId(node), name, ByteView(value, size), flags, reply.caller()));
  });
}

void RemoveXattr(fuse_req_t request, fuse_ino_t node, const char* name) {
  Serve(request, Op::kRemoveXattr, [&](Reply& reply) {
    return reply.Finish(reply.view().RemoveXattr(NodeId(node), name, reply.caller()));
  });
}

void StatFs(fuse_req_t request, fuse_ino_t node) {
  Serve(request, Op::kStatFs, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const vfs::FileSystemFacts facts, reply.view().StatFileSystem(NodeId(node)));
    return reply.FileSystem(facts);
  });
}

void Allocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t size,
              fuse_file_info* info) {
  Serve(request, Op::kAllocate, [&](Reply& reply) {
    return reply.Finish(reply.view().Allocate(HandleOf(info), mode, static_cast<uint64_t>(offset),
                                              static_cast<uint64_t>(size), reply.caller()));
  });
}

void Seek(fuse_req_t request, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
  Serve(request, Op::kSeek, [&](Reply& reply) -> Status {
    ASSIGN_OR_RETURN(const uint64_t found,
                     reply.view().Seek(HandleOf(info), static_cast<uint64_t>(offset), whence));
    return reply.Offset(found);
  });
}

void CopyRange(fuse_req_t request, fuse_ino_t, off_t from_offset, fuse_file_info* from, fuse_ino_t,
               off_t to_offset, fuse_file_info* to, size_t size, int flags) {
  Serve(request, Op::kCopyRange, [&](Reply& reply) -> Status {
    if (flags != 0) return reply.Error(EINVAL);
    ASSIGN_OR_RETURN(
        const size_t copied,
        reply.view().CopyRange(HandleOf(from), static_cast<uint64_t>(from_offset), HandleOf(to),
                               static_cast<uint64_t>(to_offset), size, reply.caller()));
    return reply.Written(copied);
  });
}

void Ioctl(fuse_req_t request, fuse_ino_t, unsigned, void*, fuse_file_info*, unsigned, const void*,
           size_t, size_t) {
  Serve(request, Op::kIoctl, [&](Reply& reply) { return reply.Error(ENOTTY); });
}

fuse_lowlevel_ops MakeTable() {
  fuse_lowlevel_ops table{};
  table.init = Init;
  table.lookup = Lookup;
  table.forget = Forget;
  table.forget_multi = ForgetMany;
  table.getattr = GetAttr;
  table.setattr = SetAttr;
  table.readlink = ReadLink;
  table.mknod = MakeNode;
  table.mkdir = MakeDirectory;
  table.unlink = Unlink;
  table.rmdir = RemoveDirectory;
  table.symlink = Symlink;
  table.rename = Rename;
  table.link = Link;
  table.create = Create;
  table.open = Open;
  table.read = Read;
  table.write = Write;
  table.flush = Flush;
  table.release = Release;
  table.fsync = Fsync;
  table.opendir = OpenDirectory;
  table.readdir = ReadDirectory;
  table.readdirplus = ReadDirectoryPlus;
  table.fsyncdir = FsyncDirectory;
  table.getxattr = GetXattr;
  table.listxattr = ListXattrs;
  table.setxattr = SetXattr;
  table.removexattr = RemoveXattr;
  table.statfs = StatFs;
  table.fallocate = Allocate;
  table.lseek = Seek;
  table.copy_file_range = CopyRange;
  table.ioctl = Ioctl;
  return table;
}

}  // namespace

const fuse_lowlevel_ops& Operations() {
  static const fuse_lowlevel_ops table = MakeTable();
  return table;
}

}  // namespace memoirfs::fuse
