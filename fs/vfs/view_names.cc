// Changes of names: what comes, goes and moves.

#include <sys/stat.h>

#include "fs/vfs/actor.h"
#include "fs/vfs/view_impl.h"
#include "store/base/file_name.h"
#include "store/base/log.h"

namespace memoirfs::vfs {
namespace {

// What is virtual exists already, whoever tries to make it.
Status CheckMakeable(const NodeParts& parent, const std::string& name) {
  TRY(CheckFileName(name));
  if (IsShared(parent, name)) return Status(Code::kExists, "memory/shared exists already");
  return {};
}

}  // namespace

// Owner and mode as Linux gives them: in a directory with S_ISGID the group is the directory's,
// and directories inherit the bit.
Result<volume::NewNode> ViewImpl::NewNodeIn(const NodeParts& parent, uint32_t mode,
                                            const Caller& caller) {
  ASSIGN_OR_RETURN(const volume::Inode directory, volume_.GetInode(parent.stream, parent.ino));
  volume::NewNode node;
  node.mode = (mode & S_IFMT) | (mode & 07777 & ~caller.umask);
  node.uid = caller.uid;
  node.gid = caller.gid;
  if ((directory.attributes.mode & S_ISGID) != 0) {
    node.gid = directory.attributes.gid;
    if (S_ISDIR(mode)) node.mode |= S_ISGID;
  }
  return node;
}

Result<Node> ViewImpl::Made(const NodeParts& parent, const std::string& name,
                            const volume::Inode& inode) {
  NotifyEntry(parent, name);
  return NodeFor(NodeParts{parent.stream, inode.id, std::nullopt});
}

Status ViewImpl::Undo(const NodeParts& parent, const std::string& name, InodeId made,
                      const Status& failure, const chain::Actor& actor) {
  // Somebody may have removed or moved it, and what has the name now is another's.
  const auto entry = volume_.Lookup(parent.stream, parent.ino, name);
  if (!entry.ok() || entry->ino != made) return failure;
  const auto removed = volume_.Unlink(parent.stream, parent.ino, name, actor);
  if (!removed.ok()) {
    Log(LogLevel::kWarn, "vfs.create",
        "the new file '" + name +
            "' stays, though its caller was told that it failed: " + removed.status().ToString());
    return failure;
  }
  NoteNames(parent.stream, *removed);
  NotifyEntry(parent, name);
  return failure;
}

Result<Node> ViewImpl::MakeNode(NodeId parent, const std::string& name, uint32_t mode,
                                uint64_t rdev, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForChange(parent));
  TRY(CheckMakeable(parts, name));
  if ((mode & S_IFMT) == 0) mode |= S_IFREG;
  if (S_ISBLK(mode) || S_ISCHR(mode)) {
    return Status(Code::kPermission, "devices are not kept in a memory");
  }
  if (!S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode)) {
    return Status(Code::kInvalidArgument, "mknod: not a type of file that it can make");
  }
  ASSIGN_OR_RETURN(volume::NewNode node, NewNodeIn(parts, mode, caller));
  node.rdev = rdev;
  const ChangeBy by{ActorOf(caller), nullptr};
  ASSIGN_OR_RETURN(const volume::Inode inode,
                   volume_.Create(parts.stream, parts.ino, name, node, by.actor));
  if (S_ISREG(mode)) {
    // Nobody has it open, so no RELEASE would commit it.
    const InodePin live = core_->inodes().Pin({parts.stream, inode.id});
    Status committed = live->NoteCreated(parts.ino, by);
    if (committed.ok()) committed = live->Commit();
    if (!committed.ok()) return Undo(parts, name, inode.id, committed, by.actor);
  }
  return Made(parts, name, inode);
}

Result<Node> ViewImpl::MakeDirectory(NodeId parent, const std::string& name, uint32_t mode,
                                     const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForChange(parent));
  TRY(CheckMakeable(parts, name));
  ASSIGN_OR_RETURN(const volume::NewNode node, NewNodeIn(parts, S_IFDIR | (mode & 07777), caller));
  ASSIGN_OR_RETURN(const volume::Inode inode,
                   volume_.MakeDirectory(parts.stream, parts.ino, name, node, ActorOf(caller)));
  return Made(parts, name, inode);
}

Result<Node> ViewImpl::MakeSymlink(NodeId parent, const std::string& name,
                                   const std::string& target, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForChange(parent));
  TRY(CheckMakeable(parts, name));
  ASSIGN_OR_RETURN(volume::NewNode node, NewNodeIn(parts, S_IFLNK, caller));
  node.mode = S_IFLNK | 0777;  // no umask
  ASSIGN_OR_RETURN(const volume::Inode inode, volume_.MakeSymlink(parts.stream, parts.ino, name,
                                                                  node, target, ActorOf(caller)));
  return Made(parts, name, inode);
}

Result<Node> ViewImpl::MakeLink(NodeId node, NodeId new_parent, const std::string& new_name,
                                const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts to, ResolveForChange(new_parent));
  TRY(CheckMakeable(to, new_name));
  ASSIGN_OR_RETURN(const NodeParts from, Resolve(node));
  if (from.kind || from.stream != to.stream) {
    return Status(Code::kCrossStream, "a link stays within one agent's memory");
  }
  const InodePin live = core_->inodes().Pin(KeyOf(from));
  const auto make = [&]() -> Status {
    ASSIGN_OR_RETURN(const volume::Inode inode,
                     volume_.MakeLink(to.stream, from.ino, to.ino, new_name, ActorOf(caller)));
    live->NoteNames(inode);
    return {};
  };
  TRY(OnceCommitted([&] { return live->CommitAnd(make); }));
  NotifyEntry(to, new_name);
  NotifyAttributes(from);
  return NodeFor(from);
}

void ViewImpl::NoteNames(StreamId stream, const volume::Inode& inode) {
  if (const InodePin live = core_->inodes().Find({stream, inode.id})) live->NoteNames(inode);
}

Status ViewImpl::Unlink(NodeId parent, const std::string& name, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForName(parent, name));
  ASSIGN_OR_RETURN(const volume::Inode inode,
                   volume_.Unlink(parts.stream, parts.ino, name, ActorOf(caller)));
  NoteNames(parts.stream, inode);
  NotifyEntry(parts, name);
  NotifyAttributes(NodeParts{parts.stream, inode.id, std::nullopt});
  return {};
}

Status ViewImpl::RemoveDirectory(NodeId parent, const std::string& name, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForName(parent, name));
  TRY(volume_.RemoveDirectory(parts.stream, parts.ino, name, ActorOf(caller)));
  NotifyEntry(parts, name);
  return {};
}

// A rename is a record of its own: what it moves must have one before.
Status ViewImpl::CommitNamed(const NodeParts& parent, const std::string& name) {
  ASSIGN_OR_RETURN(const volume::Entry entry, volume_.Lookup(parent.stream, parent.ino, name));
  const InodePin live = core_->inodes().Find({parent.stream, entry.ino});
  return live ? live->Commit() : Status();
}

Status ViewImpl::Rename(NodeId parent, const std::string& name, NodeId new_parent,
                        const std::string& new_name, volume::RenameMode mode,
                        const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts from, ResolveForName(parent, name));
  ASSIGN_OR_RETURN(const NodeParts to, ResolveForName(new_parent, new_name));
  if (from.stream != to.stream) {
    return Status(Code::kCrossStream, "a rename stays within one agent's memory");
  }
  TRY(RenameWithin(from, name, to, new_name, mode, ActorOf(caller)));
  NotifyEntry(from, name);
  NotifyEntry(to, new_name);
  return {};
}

Status ViewImpl::RenameWithin(const NodeParts& from, const std::string& name, const NodeParts& to,
                              const std::string& new_name, volume::RenameMode mode,
                              const chain::Actor& actor) {
  const auto rename = [&]() -> Result<std::optional<volume::Inode>> {
    TRY(CommitNamed(from, name));
    if (mode == volume::RenameMode::kExchange) TRY(CommitNamed(to, new_name));
    return volume_.Rename(from.stream, from.ino, name, to.ino, new_name, mode, actor);
  };
  ASSIGN_OR_RETURN(const std::optional<volume::Inode> replaced, OnceCommitted(rename));
  if (!replaced) return {};
  NoteNames(from.stream, *replaced);
  NotifyAttributes(NodeParts{from.stream, replaced->id, std::nullopt});
  return {};
}

}  // namespace memoirfs::vfs
