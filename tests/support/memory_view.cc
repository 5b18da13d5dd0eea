#include "tests/support/memory_view.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace memoirfs::testing {
namespace {

using vfs::Caller;
using vfs::HandleId;
using vfs::Node;
using vfs::NodeId;

constexpr NodeId kRoot{1};
constexpr uint64_t kStreamOne = 1ULL << 40;
constexpr uint64_t kLargestFile = 8ULL << 30;
constexpr uint64_t kBlock = 4096;
// Offsets of a listing: behind ".", behind "..", then each entry's cookie.
constexpr uint64_t kDot = 1, kDotDot = 2;

Nanos Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

Status Missing(std::string_view what) { return Status(Code::kNotFound, std::string(what)); }

}  // namespace

struct MemoryView::Inode {
  struct Child {
    uint64_t cookie;
    InodePtr inode;
  };

  NodeId id;
  Attributes attributes;
  uint32_t nlink = 1;
  uint32_t openers = 0;
  bool cacheable = true;
  Bytes content;  // of a file, or the target of a symlink
  std::map<std::string, Bytes> xattrs;
  // Of a directory.
  NodeId parent;
  std::map<std::string, Child, std::less<>> children;
  std::map<uint64_t, std::string> order;
  uint64_t next_cookie = kDotDot + 1;

  void Touch() { attributes.mtime = attributes.ctime = Now(); }

  Node AsNode() const {
    Node node;
    node.id = id;
    node.attributes = attributes;
    node.nlink = nlink;
    node.size = content.size();
    node.blocks = (content.size() + 511) / 512;
    node.cacheable = cacheable;
    return node;
  }
};

struct MemoryView::Handle {
  InodePtr inode;
  int flags = 0;
};

MemoryView::MemoryView() {
  auto root = std::make_shared<Inode>();
  root->id = root->parent = kRoot;
  root->nlink = 2;
  root->attributes.mode = S_IFDIR | 0755;
  root->attributes.uid = ::geteuid();
  root->attributes.gid = ::getegid();
  root->attributes.btime = root->attributes.atime = Now();
  root->Touch();
  inodes_.emplace(kRoot, std::move(root));
}

MemoryView::~MemoryView() = default;

void MemoryView::SetCacheable(NodeId node, bool cacheable) {
  WriterLock lock(mutex_);
  if (const auto found = inodes_.find(node); found != inodes_.end()) {
    found->second->cacheable = cacheable;
  }
}

size_t MemoryView::open_handles() const {
  ReaderLock lock(mutex_);
  return handles_.size();
}

Result<MemoryView::InodePtr> MemoryView::Find(NodeId node) const {
  const auto found = inodes_.find(node);
  if (found == inodes_.end()) return Status(Code::kStale, "no such node");
  return found->second;
}

Result<MemoryView::InodePtr> MemoryView::FindDirectory(NodeId node) const {
  ASSIGN_OR_RETURN(InodePtr inode, Find(node));
  if (!inode->attributes.IsDirectory()) return Status(Code::kNotDirectory, "not a directory");
  return inode;
}

Result<MemoryView::InodePtr> MemoryView::FindChild(NodeId parent, std::string_view name) const {
  ASSIGN_OR_RETURN(const InodePtr directory, FindDirectory(parent));
  const auto found = directory->children.find(name);
  if (found == directory->children.end()) return Missing(name);
  return found->second.inode;
}

Result<MemoryView::Handle> MemoryView::FindHandle(HandleId handle) const {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return Status(Code::kInvalidArgument, "no such handle");
  return found->second;
}

Result<Node> MemoryView::Lookup(NodeId parent, std::string_view name) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, FindChild(parent, name));
  return inode->AsNode();
}

Result<Node> MemoryView::GetAttributes(NodeId node) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  return inode->AsNode();
}

Result<Node> MemoryView::SetAttributes(NodeId node, const vfs::AttributeChange& change,
                                       std::optional<HandleId>, const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  Attributes& attributes = inode->attributes;
  const Nanos now = Now();
  if (change.size) {
    if (*change.size > kLargestFile) return Status(Code::kTooLarge, "too large");
    inode->content.resize(*change.size);
    attributes.mtime = now;
  }
  if (change.mode) attributes.mode = (attributes.mode & S_IFMT) | (*change.mode & 07777U);
  if (change.uid) attributes.uid = *change.uid;
  if (change.gid) attributes.gid = *change.gid;
  if (change.kill_privileges) attributes.mode &= ~uint32_t{S_ISUID | S_ISGID};
  if (change.atime || change.atime_now) attributes.atime = change.atime.value_or(now);
  if (change.mtime || change.mtime_now) attributes.mtime = change.mtime.value_or(now);
  attributes.ctime = change.ctime.value_or(now);
  return inode->AsNode();
}

Result<std::string> MemoryView::ReadLink(NodeId node) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  if (!inode->attributes.IsSymlink()) return Status(Code::kInvalidArgument, "not a symlink");
  return inode->content;
}

Result<MemoryView::InodePtr> MemoryView::Make(NodeId parent, const std::string& name, uint32_t mode,
                                              uint64_t rdev, const Caller& caller) {
  ASSIGN_OR_RETURN(const InodePtr directory, FindDirectory(parent));
  if (directory->nlink == 0) return Missing("the directory was removed");
  if (directory->children.contains(name)) return Status(Code::kExists, name);
  auto inode = std::make_shared<Inode>();
  inode->id = NodeId(kStreamOne | next_inode_++);
  inode->attributes = {.mode = mode, .uid = caller.uid, .gid = caller.gid, .rdev = rdev};
  if (directory->attributes.mode & S_ISGID) {
    inode->attributes.gid = directory->attributes.gid;
    if (S_ISDIR(mode)) inode->attributes.mode |= S_ISGID;
  }
  inode->attributes.atime = inode->attributes.btime = Now();
  inode->Touch();
  inode->nlink = S_ISDIR(mode) ? 1 : 0;  // "."; AddName counts the name
  inodes_.emplace(inode->id, inode);
  AddName(*directory, name, inode);
  return inode;
}

void MemoryView::AddName(Inode& directory, const std::string& name, const InodePtr& inode) {
  const uint64_t cookie = directory.next_cookie++;
  directory.children.emplace(name, Inode::Child{cookie, inode});
  directory.order.emplace(cookie, name);
  directory.Touch();
  ++inode->nlink;
  inode->attributes.ctime = Now();
  if (inode->attributes.IsDirectory()) {
    inode->parent = directory.id;
    ++directory.nlink;
  }
}

void MemoryView::DropName(Inode& directory, const std::string& name) {
  const auto found = directory.children.find(name);
  const InodePtr inode = found->second.inode;
  directory.order.erase(found->second.cookie);
  directory.children.erase(found);
  directory.Touch();
  --inode->nlink;
  inode->attributes.ctime = Now();
  if (inode->attributes.IsDirectory()) --directory.nlink;
  ForgetUnused(*inode);
}

void MemoryView::ForgetUnused(Inode& inode) {
  if (inode.nlink == 0 && inode.openers == 0) inodes_.erase(inode.id);
}

Result<Node> MemoryView::MakeNode(NodeId parent, const std::string& name, uint32_t mode,
                                  uint64_t rdev, const Caller& caller) {
  WriterLock lock(mutex_);
  if (S_ISCHR(mode) || S_ISBLK(mode)) return Status(Code::kPermission, "no devices here");
  ASSIGN_OR_RETURN(const InodePtr inode, Make(parent, name, mode, rdev, caller));
  return inode->AsNode();
}

Result<Node> MemoryView::MakeDirectory(NodeId parent, const std::string& name, uint32_t mode,
                                       const Caller& caller) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Make(parent, name, mode | S_IFDIR, 0, caller));
  return inode->AsNode();
}

Result<Node> MemoryView::MakeSymlink(NodeId parent, const std::string& name,
                                     const std::string& target, const Caller& caller) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Make(parent, name, S_IFLNK | 0777, 0, caller));
  inode->content = target;
  return inode->AsNode();
}

Result<Node> MemoryView::MakeLink(NodeId node, NodeId new_parent, const std::string& new_name,
                                  const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  ASSIGN_OR_RETURN(const InodePtr directory, FindDirectory(new_parent));
  if (inode->attributes.IsDirectory()) return Status(Code::kPermission, "a directory");
  if (directory->children.contains(new_name)) return Status(Code::kExists, new_name);
  AddName(*directory, new_name, inode);
  return inode->AsNode();
}

Status MemoryView::Unlink(NodeId parent, const std::string& name, const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, FindChild(parent, name));
  if (inode->attributes.IsDirectory()) return Status(Code::kIsDirectory, name);
  DropName(*inodes_.at(parent), name);
  return {};
}

Status MemoryView::RemoveDirectory(NodeId parent, const std::string& name, const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, FindChild(parent, name));
  if (!inode->attributes.IsDirectory()) return Status(Code::kNotDirectory, name);
  if (!inode->children.empty()) return Status(Code::kNotEmpty, name);
  --inode->nlink;  // its "."
  DropName(*inodes_.at(parent), name);
  return {};
}

Status MemoryView::CheckReplace(const Inode& moved, const Inode& replaced) const {
  const bool directory = moved.attributes.IsDirectory();
  if (directory && !replaced.attributes.IsDirectory()) {
    return Status(Code::kNotDirectory, "a directory over a file");
  }
  if (!directory && replaced.attributes.IsDirectory()) {
    return Status(Code::kIsDirectory, "a file over a directory");
  }
  if (!replaced.children.empty()) return Status(Code::kNotEmpty, "the target is not empty");
  return {};
}

Status MemoryView::Rename(NodeId parent, const std::string& name, NodeId new_parent,
                          const std::string& new_name, volume::RenameMode mode, const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr moved, FindChild(parent, name));
  ASSIGN_OR_RETURN(const InodePtr target, FindDirectory(new_parent));
  Inode& source = *inodes_.at(parent);
  const auto found = target->children.find(new_name);
  const InodePtr replaced = found == target->children.end() ? nullptr : found->second.inode;
  if (mode == volume::RenameMode::kExchange) {
    if (!replaced) return Missing(new_name);
    Exchange(source, name, *target, new_name);
    return {};
  }
  if (replaced && mode == volume::RenameMode::kNoReplace) return Status(Code::kExists, new_name);
  if (replaced == moved) return {};
  if (replaced) {
    TRY(CheckReplace(*moved, *replaced));
    if (replaced->attributes.IsDirectory()) --replaced->nlink;
    DropName(*target, new_name);
  }
  AddName(*target, new_name, moved);  // first, so that it never has no name
  const NodeId now_in = target->id;
  DropName(source, name);
  if (moved->attributes.IsDirectory()) moved->parent = now_in;
  return {};
}

void MemoryView::Exchange(Inode& directory, const std::string& name, Inode& other,
                          const std::string& other_name) {
  InodePtr& one = directory.children.find(name)->second.inode;
  InodePtr& two = other.children.find(other_name)->second.inode;
  const int moved_in = int{two->attributes.IsDirectory()} - int{one->attributes.IsDirectory()};
  directory.nlink += static_cast<uint32_t>(moved_in);
  other.nlink -= static_cast<uint32_t>(moved_in);
  std::swap(one, two);
  one->parent = directory.id;
  two->parent = other.id;
  directory.Touch();
  other.Touch();
}

vfs::Opened MemoryView::OpenInode(const InodePtr& inode, int open_flags) {
  const HandleId handle(next_handle_++);
  ++inode->openers;
  handles_.emplace(handle, Handle{inode, open_flags});
  return {.handle = handle};
}

Result<vfs::View::Created> MemoryView::Create(NodeId parent, const std::string& name, uint32_t mode,
                                              int open_flags, const Caller& caller) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Make(parent, name, mode, 0, caller));
  return Created{inode->AsNode(), OpenInode(inode, open_flags)};
}

Result<vfs::Opened> MemoryView::Open(NodeId node, int open_flags, const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  if (inode->attributes.IsDirectory()) return Status(Code::kIsDirectory, "a directory");
  if (open_flags & O_TRUNC) {
    inode->content.clear();
    inode->Touch();
  }
  return OpenInode(inode, open_flags);
}

Result<Bytes> MemoryView::Read(HandleId handle, uint64_t offset, size_t size) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const Handle open, FindHandle(handle));
  const Bytes& content = open.inode->content;
  if (offset >= content.size()) return Bytes();
  return content.substr(offset, size);
}

Result<size_t> MemoryView::Write(HandleId handle, uint64_t offset, ByteView data, bool writeback,
                                 const Caller& caller) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const Handle open, FindHandle(handle));
  Bytes& content = open.inode->content;
  if ((open.flags & O_APPEND) != 0 && !writeback) offset = content.size();
  if (offset > kLargestFile || data.size() > kLargestFile - offset) {
    return Status(Code::kTooLarge, "too large");
  }
  if (offset > content.size()) content.resize(offset);
  content.replace(offset, std::min(data.size(), content.size() - offset), data);
  if (!caller.keeps_privileges) {
    open.inode->attributes.mode &= ~uint32_t{S_ISUID | S_ISGID};
  }
  open.inode->Touch();
  return data.size();
}

Status MemoryView::Flush(HandleId handle) { return Fsync(handle); }

Status MemoryView::Fsync(HandleId handle) {
  ReaderLock lock(mutex_);
  return FindHandle(handle).status();
}

Status MemoryView::FsyncDirectory(NodeId node) {
  ReaderLock lock(mutex_);
  return FindDirectory(node).status();
}

Status MemoryView::Release(HandleId handle) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const Handle open, FindHandle(handle));
  handles_.erase(handle);
  --open.inode->openers;
  ForgetUnused(*open.inode);
  return {};
}

Status MemoryView::Allocate(HandleId handle, int mode, uint64_t offset, uint64_t size,
                            const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const Handle open, FindHandle(handle));
  constexpr int kKnown = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  if (mode & ~kKnown) return Status(Code::kNotSupported, "fallocate: this mode");
  if (offset > kLargestFile || size > kLargestFile - offset) {
    return Status(Code::kTooLarge, "too large");
  }
  Bytes& content = open.inode->content;
  const uint64_t end = offset + size;
  if (!(mode & FALLOC_FL_KEEP_SIZE) && end > content.size()) content.resize(end);
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) && offset < content.size()) {
    const auto from = content.begin() + static_cast<ptrdiff_t>(offset);
    std::fill_n(from, std::min<uint64_t>(size, content.size() - offset), '\0');
  }
  open.inode->Touch();
  return {};
}

Result<uint64_t> MemoryView::Seek(HandleId handle, uint64_t offset, int whence) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const Handle open, FindHandle(handle));
  const uint64_t size = open.inode->content.size();
  if (offset >= size) return Status(Code::kNoDevice, "beyond the end");
  return whence == SEEK_DATA ? offset : size;
}

Result<size_t> MemoryView::CopyRange(HandleId from, uint64_t from_offset, HandleId to,
                                     uint64_t to_offset, size_t size, const Caller& caller) {
  ASSIGN_OR_RETURN(const Bytes data, Read(from, from_offset, size));
  return Write(to, to_offset, data, false, caller);
}

Status MemoryView::ReadDirectory(NodeId node, uint64_t offset, bool, const AddEntry& add) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr directory, FindDirectory(node));
  if (offset < kDot && !add({".", directory->AsNode(), kDot})) return {};
  if (offset < kDotDot) {
    const auto parent = inodes_.find(directory->parent);
    const Inode& above = parent == inodes_.end() ? *directory : *parent->second;
    if (!add({"..", above.AsNode(), kDotDot})) return {};
  }
  for (auto at = directory->order.upper_bound(offset); at != directory->order.end(); ++at) {
    const Inode& child = *directory->children.find(at->second)->second.inode;
    if (!add({at->second, child.AsNode(), at->first})) return {};
  }
  return {};
}

Result<Bytes> MemoryView::GetXattr(NodeId node, const std::string& name) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  if (!name.starts_with("user.")) return Status(Code::kNotSupported, name);
  const auto found = inode->xattrs.find(name);
  if (found == inode->xattrs.end()) return Status(Code::kNoAttribute, name);
  return found->second;
}

Result<std::vector<std::string>> MemoryView::ListXattrs(NodeId node) {
  ReaderLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  std::vector<std::string> names;
  for (const auto& [name, value] : inode->xattrs) names.push_back(name);
  return names;
}

Status MemoryView::SetXattr(NodeId node, const std::string& name, ByteView value, int flags,
                            const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  if (!name.starts_with("user.")) return Status(Code::kNotSupported, name);
  const bool there = inode->xattrs.contains(name);
  if (there && (flags & XATTR_CREATE)) return Status(Code::kExists, name);
  if (!there && (flags & XATTR_REPLACE)) return Status(Code::kNoAttribute, name);
  inode->xattrs[name] = Bytes(value);
  inode->attributes.ctime = Now();
  return {};
}

Status MemoryView::RemoveXattr(NodeId node, const std::string& name, const Caller&) {
  WriterLock lock(mutex_);
  ASSIGN_OR_RETURN(const InodePtr inode, Find(node));
  if (inode->xattrs.erase(name) == 0) return Status(Code::kNoAttribute, name);
  inode->attributes.ctime = Now();
  return {};
}

Result<vfs::FileSystemFacts> MemoryView::StatFileSystem(NodeId) {
  ReaderLock lock(mutex_);
  return vfs::FileSystemFacts{.block_size = kBlock,
                              .blocks = 1U << 20,
                              .available_blocks = 1U << 19,
                              .files = 1U << 20,
                              .available_files = (1U << 20) - inodes_.size()};
}

Status MemoryView::CommitAll() { return {}; }

}  // namespace memoirfs::testing
