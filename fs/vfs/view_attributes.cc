// Changes of attributes, and extended attributes.

#include <sys/xattr.h>

#include <algorithm>

#include "fs/vfs/actor.h"
#include "fs/vfs/view_impl.h"
#include "store/cas/chunk_tree.h"

namespace memoirfs::vfs {
namespace {

constexpr std::string_view kUserPrefix = "user.";
constexpr std::string_view kFactPrefix = "user.memoir.";  // what the store says of a file

Status CheckIsUserXattr(std::string_view name) {
  if (!name.starts_with(kUserPrefix)) {
    return Status(Code::kNotSupported, "only user.* attributes are kept");
  }
  if (name == kUserPrefix) return Status(Code::kInvalidArgument, "an xattr needs a name");
  return {};
}

// What sha256sum prints of content in chunks: all of it is read.
Result<Digest> FlatDigest(cas::ObjectStore& objects, const ContentId& content) {
  constexpr size_t kPiece = 1U << 20;
  Sha256 hasher;
  for (uint64_t offset = 0; offset < content.size; offset += kPiece) {
    ASSIGN_OR_RETURN(const Bytes piece, cas::ReadContent(objects, content, offset, kPiece));
    hasher.Update(piece);
  }
  return hasher.Finish();
}

Status NoAttribute() { return Status(Code::kNoAttribute, "no such attribute"); }

std::string_view StateName(LiveInode::State state) {
  switch (state) {
    case LiveInode::State::kClean:
      return "clean";
    case LiveInode::State::kDirty:
      return "dirty";
    case LiveInode::State::kUncommitted:
      return "uncommitted";
  }
  return "clean";
}

}  // namespace

Result<Node> ViewImpl::SetAttributes(NodeId node, const AttributeChange& change,
                                     std::optional<HandleId> handle, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForChange(node));
  std::shared_ptr<OpenFile> file;
  if (handle) {
    ASSIGN_OR_RETURN(file, FileForChange(*handle));
  }
  const ChangeBy by =
      file ? ChangeBy{file->ActorFor(caller), &file->marks} : ChangeBy{ActorOf(caller), nullptr};
  if (change.size) TRY(core_->MakeRoom());
  const InodePin live = core_->inodes().Pin(KeyOf(parts));
  TRY(OnceCommitted([&] { return live->ChangeAttributes(change, by); }));
  if (change.size) {
    NotifyContent(parts);
  } else {
    NotifyAttributes(parts);
  }
  if (parts.ino == kRootInode && (change.mode || change.uid || change.gid)) {
    NotifyLayout(parts.stream);
  }
  return NodeFor(parts);
}

// Facts of the last committed content, and whether that is all there is.
Result<Bytes> ViewImpl::FactXattr(const NodeParts& parts, const std::string& name) {
  ASSIGN_OR_RETURN(const volume::Inode inode, volume_.GetInode(parts.stream, parts.ino));
  const std::string_view fact = std::string_view(name).substr(kFactPrefix.size());
  if (fact == "seq") return std::to_string(inode.seq.value);
  if (!inode.attributes.IsRegular()) return NoAttribute();
  const bool flat = inode.content.kind == ContentKind::kFlat;
  if (fact == "content") return (flat ? "flat:" : "tree:") + inode.content.digest.ToHex();
  if (fact == "sha256") {
    if (flat) return inode.content.digest.ToHex();
    ASSIGN_OR_RETURN(const Digest digest, FlatDigest(volume_.objects(), inode.content));
    return digest.ToHex();
  }
  if (fact == "state") {
    const InodePin live = core_->inodes().Find(KeyOf(parts));
    return Bytes(StateName(live ? live->state() : LiveInode::State::kClean));
  }
  return NoAttribute();
}

Result<Bytes> ViewImpl::GetXattr(NodeId node, const std::string& name) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  TRY(CheckIsUserXattr(name));
  if (parts.kind) return NoAttribute();
  if (name.starts_with(kFactPrefix)) return FactXattr(parts, name);
  return UserXattr(parts, name);
}

LiveInode::XattrChanges ViewImpl::OrphanXattrs(const NodeParts& parts) {
  const InodePin live = core_->inodes().Find(KeyOf(parts));
  return live ? live->orphan_xattrs() : LiveInode::XattrChanges();
}

Result<Bytes> ViewImpl::UserXattr(const NodeParts& parts, const std::string& name) {
  const LiveInode::XattrChanges orphaned = OrphanXattrs(parts);
  if (const auto it = orphaned.find(name); it != orphaned.end()) {
    return it->second ? Result<Bytes>(*it->second) : NoAttribute();
  }
  return volume_.GetXattr(parts.stream, parts.ino, name);
}

Result<std::vector<std::string>> ViewImpl::ListXattrs(NodeId node) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  if (parts.kind) return std::vector<std::string>();
  ASSIGN_OR_RETURN(std::vector<std::string> names, volume_.ListXattrs(parts.stream, parts.ino));
  for (const auto& [name, value] : OrphanXattrs(parts)) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (!value && known != names.end()) names.erase(known);
    if (value && known == names.end()) names.push_back(name);
  }
  return names;
}

// What setxattr(2) asks with its flags, and that what is removed is there.
Status ViewImpl::CheckXattrFlags(const NodeParts& parts, const std::string& name, bool removes,
                                 int flags) {
  if (flags == 0 && !removes) return {};
  const Code found = UserXattr(parts, name).code();
  if (flags == XATTR_CREATE && found == Code::kOk) {
    return Status(Code::kExists, "the attribute exists already");
  }
  const bool must_exist = removes || flags == XATTR_REPLACE;
  return must_exist && found == Code::kNoAttribute ? NoAttribute() : Status();
}

Status ViewImpl::ChangeXattr(NodeId node, const std::string& name,
                             const std::optional<Bytes>& value, int flags, const Caller& caller) {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForChange(node));
  TRY(CheckIsUserXattr(name));
  if (name.starts_with(kFactPrefix)) {
    return Status(Code::kPermission, "user.memoir.* is what the store says, and can't be set");
  }
  const InodePin live = core_->inodes().Pin(KeyOf(parts));
  const auto set = [&]() -> Status {
    TRY(CheckXattrFlags(parts, name, !value, flags));
    const ChangeBy by{ActorOf(caller), nullptr};
    const Status recorded = volume_.SetXattr(parts.stream, parts.ino, name, value, by.actor);
    return recorded.code() == Code::kNotFound ? live->ChangeOrphanXattr(name, value, by) : recorded;
  };
  TRY(OnceCommitted([&] { return live->CommitAnd(set); }));
  NotifyAttributes(parts);
  return {};
}

Status ViewImpl::SetXattr(NodeId node, const std::string& name, ByteView value, int flags,
                          const Caller& caller) {
  return ChangeXattr(node, name, Bytes(value), flags, caller);
}

Status ViewImpl::RemoveXattr(NodeId node, const std::string& name, const Caller& caller) {
  return ChangeXattr(node, name, std::nullopt, 0, caller);
}

}  // namespace memoirfs::vfs
