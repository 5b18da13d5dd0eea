// Attributes, extended attributes, symbolic links' targets.

#include "store/base/file_name.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

constexpr size_t kMaxXattrValue = 64 * 1024;  // Linux: XATTR_SIZE_MAX
constexpr size_t kMaxXattrName = 255;         // Linux: XATTR_NAME_MAX

}  // namespace

Status CheckXattr(const std::string& name, const std::optional<Bytes>& value) {
  if (name.size() > kMaxXattrName) return Status(Code::kRange, "the attribute's name is too long");
  if (!IsValidUtf8(name)) return Status(Code::kIllegalName, "an attribute's name must be UTF-8");
  if (value && value->size() > kMaxXattrValue) {
    return Status(Code::kTooLarge, "the attribute's value is too long", E2BIG);
  }
  return {};
}

Result<Inode> Volume::Impl::SetAttributes(StreamId stream_id, InodeId ino,
                                          const Attributes& attributes, const chain::Actor& actor) {
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  ASSIGN_OR_RETURN(Inode inode, InodeOf(stream_id, ino));
  if (stream->creates.count(ino) != 0) {
    return Status(Code::kUncommitted, "attributes of a file that is not committed");
  }
  Commit commit;
  commit.change.op = chain::Op::kAttr;
  commit.change.ino = ino;
  commit.change.attributes = attributes;
  commit.change.attributes->mode =
      (inode.attributes.mode & S_IFMT) | (attributes.mode & ~uint32_t{S_IFMT});
  commit.change.attributes->btime = inode.attributes.btime;
  commit.change.attributes->rdev = inode.attributes.rdev;
  if (inode.nlink == 0 || *commit.change.attributes == inode.attributes) return inode;
  commit.change.path = tables_->PathOf(stream_id, ino);
  commit.change.actor = actor;
  TRY(Append(*stream, std::move(commit)));
  return InodeOf(stream_id, ino);
}

Status Volume::Impl::SetXattr(StreamId stream_id, InodeId ino, const std::string& name,
                              const std::optional<Bytes>& value, const chain::Actor& actor) {
  TRY(CheckXattr(name, value));
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  ASSIGN_OR_RETURN(const Inode inode, InodeOf(stream_id, ino));
  if (inode.nlink == 0) return Status(Code::kNotFound, "an inode without a name is not recorded");
  if (stream->creates.count(ino) != 0) {
    return Status(Code::kUncommitted, "attribute of a file that is not committed");
  }
  Commit commit;
  commit.change.op = chain::Op::kXattr;
  commit.change.ino = ino;
  commit.change.xattr_name = name;
  commit.change.path = tables_->PathOf(stream_id, ino);
  commit.change.actor = actor;
  if (value) {
    const Digest digest = Sha256::Of(*value);
    commit.change.content = ContentId{digest, value->size(), ContentKind::kFlat};
    commit.objects.push_back(NewObject{digest, std::make_shared<const Bytes>(*value), {}, 0});
  } else {
    ASSIGN_OR_RETURN(const auto present, tables_->Xattr(stream_id, ino, name));
    if (!present) return Status(Code::kNoAttribute, "no such attribute");
  }
  return Append(*stream, std::move(commit));
}

Result<Bytes> Volume::Impl::GetXattr(StreamId stream, InodeId ino, const std::string& name) {
  ASSIGN_OR_RETURN(const auto content, tables_->Xattr(stream, ino, name));
  if (!content) return Status(Code::kNoAttribute, "no such attribute");
  ASSIGN_OR_RETURN(const Buffer value, objects_->Get(content->digest));
  return *value;
}

Result<std::vector<std::string>> Volume::Impl::ListXattrs(StreamId stream, InodeId ino) const {
  std::vector<std::string> names;
  const Bytes prefix = meta::XattrPrefix(stream, ino);
  TRY(index_->Scan(prefix, prefix, [&](ByteView key, ByteView) {
    names.push_back(meta::XattrNameOfKey(key));
    return true;
  }));
  return names;
}

Result<std::string> Volume::Impl::ReadLink(StreamId stream, InodeId ino) {
  ASSIGN_OR_RETURN(const Inode inode, InodeOf(stream, ino));
  if (!inode.attributes.IsSymlink()) {
    return Status(Code::kInvalidArgument, "not a symbolic link");
  }
  ASSIGN_OR_RETURN(const Buffer target, objects_->Get(inode.content.digest));
  return *target;
}

}  // namespace memoirfs::volume
