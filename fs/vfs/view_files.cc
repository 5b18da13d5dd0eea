// Open files.

#include <fcntl.h>

#include <algorithm>

#include "fs/vfs/actor.h"
#include "fs/vfs/view_impl.h"
#include "fs/vfs/virtual_files.h"
#include "store/base/file_name.h"

namespace memoirfs::vfs {
namespace {

constexpr size_t kCopyPiece = cas::kChunkSize;
constexpr size_t kCopyAtMost = 16U << 20;  // a call: copies go on where the last one ended

bool OpensForWriting(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
}

}  // namespace

Result<View::Created> ViewImpl::Create(NodeId parent, const std::string& name, uint32_t mode,
                                       int open_flags, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForChange(parent));
  TRY(CheckFileName(name));
  if (IsShared(parts, name)) return Status(Code::kExists, "memory/shared exists already");
  Result<Created> created = CreateNew(parts, name, mode, open_flags, caller);
  if (created.code() != Code::kExists || (open_flags & O_EXCL) != 0) return created;
  // Somebody was faster, through another mount. The kernel looks up again, and opens what is there
  // only after it checked the permissions.
  return Status(Code::kStale, "'" + name + "' was made meanwhile");
}

Result<View::Created> ViewImpl::CreateNew(const NodeParts& parent, const std::string& name,
                                          uint32_t mode, int open_flags, const Caller& caller) {
  ASSIGN_OR_RETURN(const volume::NewNode node, NewNodeIn(parent, S_IFREG | (mode & 07777), caller));
  auto file = std::make_shared<OpenFile>();
  file->flags = open_flags;
  file->opener = caller;
  const ChangeBy by{file->ActorFor(caller), &file->marks};
  ASSIGN_OR_RETURN(const volume::Inode inode,
                   volume_.Create(parent.stream, parent.ino, name, node, by.actor));
  file->node = NodeParts{parent.stream, inode.id, std::nullopt};
  file->inode = core_->inodes().Pin(KeyOf(file->node));
  if (Status noted = file->inode->NoteCreated(parent.ino, by); !noted.ok()) {
    return Undo(parent, name, inode.id, noted, by.actor);
  }
  Result<Node> made = Made(parent, name, inode);
  if (!made.ok()) return Undo(parent, name, inode.id, made.status(), by.actor);
  return Created{*std::move(made), AddHandle(std::move(file))};
}

Result<Opened> ViewImpl::Open(NodeId node, int open_flags, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  if (OpensForWriting(open_flags)) TRY(ResolveForChange(node));
  return parts.kind ? OpenVirtual(parts, open_flags) : OpenReal(parts, open_flags, caller);
}

Result<Opened> ViewImpl::OpenReal(const NodeParts& parts, int open_flags, const Caller& caller) {
  auto file = std::make_shared<OpenFile>();
  file->node = parts;
  file->flags = open_flags;
  file->opener = caller;
  file->inode = core_->inodes().Pin(KeyOf(parts));
  // The kernel sends directories and the like elsewhere; a node that is gone is looked up again.
  const Result<Node> node = GetAttributes(NodeOf(parts));
  TRY(node);
  if (node->attributes.IsDirectory()) return Status(Code::kIsDirectory, "open: a directory");
  if (!node->attributes.IsRegular()) return Status(Code::kNoDevice, "open: not a regular file");
  if ((open_flags & O_TRUNC) != 0) {
    const ChangeBy by{file->ActorFor(caller), &file->marks};
    TRY(file->inode->TruncateAtOpen(!caller.keeps_privileges, by));
    NotifyContent(parts);
  }
  return AddHandle(std::move(file));
}

Result<Opened> ViewImpl::OpenVirtual(const NodeParts& parts, int open_flags) {
  if (IsVirtualDirectory(*parts.kind)) return Status(Code::kIsDirectory, "open: a directory");
  auto file = std::make_shared<OpenFile>();
  file->node = parts;
  file->flags = open_flags;
  if (parts.kind == VirtualKind::kStatus) {
    ASSIGN_OR_RETURN(file->rendered, RenderStatus(parts.stream));
  }
  Opened opened = AddHandle(std::move(file));
  opened.keep_cache = false;
  opened.direct_io = true;
  return opened;
}

Opened ViewImpl::AddHandle(std::shared_ptr<OpenFile> file) {
  if (file->inode) ++file->inode->handles;
  ++core_->open_files();
  Opened opened;
  opened.handle = handles_.Add(std::move(file));
  // A change through another mount that this kernel was not told of yet.
  opened.keep_cache = core_->notifications().Idle(id_);
  return opened;
}

Result<std::shared_ptr<OpenFile>> ViewImpl::RealFile(HandleId handle) {
  ASSIGN_OR_RETURN(std::shared_ptr<OpenFile> file, handles_.Find(handle));
  if (!file->inode) return Status(Code::kNotSupported, "not possible on a virtual file");
  return file;
}

Result<std::shared_ptr<OpenFile>> ViewImpl::FileForChange(HandleId handle) {
  ASSIGN_OR_RETURN(std::shared_ptr<OpenFile> file, handles_.Find(handle));
  if (read_only_ || !file->inode) return Status(Code::kReadOnly, "open for reading only");
  return file;
}

Result<Bytes> ViewImpl::Read(HandleId handle, uint64_t offset, size_t size) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, handles_.Find(handle));
  if (file->inode) return file->inode->Read(offset, size);
  if (file->node.kind == VirtualKind::kChain) {
    return ReadChain(volume_.io(), file->node.stream, offset, size);
  }
  return offset < file->rendered.size() ? file->rendered.substr(offset, size) : Bytes();
}

Result<size_t> ViewImpl::Write(HandleId handle, uint64_t offset, ByteView data, bool writeback,
                               const Caller& caller) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, FileForChange(handle));
  WriteRequest request;
  request.offset = offset;
  request.append = (file->flags & O_APPEND) != 0 && !writeback;
  request.kill_privileges = !caller.keeps_privileges;
  request.data = data;
  TRY(WriteTo(*file, request, caller));
  return data.size();
}

Status ViewImpl::WriteTo(OpenFile& file, const WriteRequest& request, const Caller& caller) {
  TRY(core_->MakeRoom());
  TRY(file.inode->Write(request, ChangeBy{file.ActorFor(caller), &file.marks}));
  NotifyContent(file.node);
  return {};
}

Status ViewImpl::Flush(HandleId handle) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, handles_.Find(handle));
  return file->inode ? file->inode->CommitAtFlush(file->marks) : Status();
}

Status ViewImpl::Release(HandleId handle) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, handles_.Remove(handle));
  --core_->open_files();
  if (!file->inode) return {};
  const bool last = --file->inode->handles == 0;
  return file->inode->CommitAtRelease(file->marks, last);
}

Status ViewImpl::Fsync(HandleId handle) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, handles_.Find(handle));
  if (!file->inode) return {};
  TRY(file->inode->Commit());
  return volume_.Sync();
}

Status ViewImpl::FsyncDirectory(NodeId node) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  if (parts.kind) return {};
  TRY(core_->CommitWhere([&](LiveInode& inode) {
    return inode.key().stream == parts.stream && inode.UncommittedIn(parts.ino);
  }));
  return volume_.Sync();
}

Status ViewImpl::Allocate(HandleId handle, int mode, uint64_t offset, uint64_t size,
                          const Caller& caller) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, FileForChange(handle));
  TRY(core_->MakeRoom());
  TRY(file->inode->Allocate(mode, offset, size, !caller.keeps_privileges,
                            ChangeBy{file->ActorFor(caller), &file->marks}));
  NotifyContent(file->node);
  return {};
}

Result<uint64_t> ViewImpl::Seek(HandleId handle, uint64_t offset, int whence) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, RealFile(handle));
  return file->inode->Seek(offset, whence);
}

Result<size_t> ViewImpl::CopyRange(HandleId from, uint64_t from_offset, HandleId to,
                                   uint64_t to_offset, size_t size, const Caller& caller) {
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> source, RealFile(from));
  ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> target, FileForChange(to));
  size = std::min(size, kCopyAtMost);
  size_t copied = 0;
  while (copied < size) {
    const Result<Bytes> piece =
        source->inode->Read(from_offset + copied, std::min(kCopyPiece, size - copied));
    if (!piece.ok() && copied == 0) return piece.status();
    if (!piece.ok() || piece->empty()) break;
    WriteRequest request;
    request.offset = to_offset + copied;
    request.kill_privileges = !caller.keeps_privileges;
    request.data = *piece;
    const Status written = WriteTo(*target, request, caller);
    if (!written.ok() && copied == 0) return written;
    if (!written.ok()) break;
    copied += piece->size();
  }
  return copied;
}

// Files of this mount, and those that nobody has open any more (their last commit failed).
Status ViewImpl::CommitAll() {
  std::vector<const LiveInode*> open;
  for (const auto& file : handles_.All()) {
    if (file->inode) open.push_back(&*file->inode);
  }
  return core_->CommitWhere([&](LiveInode& inode) {
    return inode.handles == 0 || std::find(open.begin(), open.end(), &inode) != open.end();
  });
}

}  // namespace memoirfs::vfs
