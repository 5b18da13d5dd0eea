// Nodes: from numbers and names to what stat(2) shows.

#include <unistd.h>

#include "fs/vfs/view_impl.h"
#include "fs/vfs/virtual_files.h"
#include "store/base/file_name.h"

namespace memoirfs::vfs {
namespace {

constexpr uint64_t kStatBlock = 512;

Status ReadOnlyNode() { return Status(Code::kReadOnly, "this part of the mount is read-only"); }

// Holes are counted as if they were data: how much of a file is stored is no property of one file,
// since equal content is stored once.
void SetSize(Node& node, uint64_t size) {
  node.size = size;
  node.blocks = size / kStatBlock + (size % kStatBlock != 0);
}

}  // namespace

ViewImpl::ViewImpl(std::shared_ptr<Vfs::Core> core, std::optional<StreamId> only, bool read_only,
                   KernelNotifier* notifier)
    : core_(std::move(core)),
      volume_(core_->volume()),
      only_(only),
      read_only_(read_only),
      notifier_(notifier),
      opened_at_(volume_.clock().Now()),
      id_(core_->notifications().Add(only, notifier)) {}

ViewImpl::~ViewImpl() {
  core_->notifications().Remove(id_);
  for (const auto& file : handles_.All()) {
    if (file->inode) --file->inode->handles;
    --core_->open_files();
  }
}

Result<NodeParts> ViewImpl::Resolve(NodeId node) const {
  std::optional<NodeParts> parts = PartsOf(node);
  if (parts && parts->kind == VirtualKind::kRoot && only_) {
    parts = NodeParts{*only_, InodeId{}, VirtualKind::kAgent};
  }
  if (!parts || (only_ && parts->stream != *only_)) {
    return Status(Code::kStale, "no node of this mount has this number");
  }
  return *parts;
}

Result<NodeParts> ViewImpl::ResolveForChange(NodeId node) const {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  if (read_only_ || parts.kind) return ReadOnlyNode();
  return parts;
}

Result<NodeParts> ViewImpl::ResolveForName(NodeId parent, const std::string& name) const {
  ASSIGN_OR_RETURN(const NodeParts parts, ResolveForChange(parent));
  TRY(CheckFileName(name));
  if (IsShared(parts, name)) return ReadOnlyNode();
  return parts;
}

NodeId ViewImpl::IdOf(const NodeParts& parts) const {
  return only_ && parts.kind == VirtualKind::kAgent ? kRootNode : NodeOf(parts);
}

Result<Node> ViewImpl::NodeFor(const NodeParts& parts) {
  return parts.kind ? VirtualNodeFor(parts) : RealNodeFor(parts);
}

Result<Node> ViewImpl::RealNodeFor(const NodeParts& parts) {
  volume::Inode inode;
  uint64_t size = 0;
  if (const InodePin live = core_->inodes().Find(KeyOf(parts))) {
    ASSIGN_OR_RETURN(inode, live->Get(&size));
  } else {
    ASSIGN_OR_RETURN(inode, volume_.GetInode(parts.stream, parts.ino));
    size = inode.content.size;
  }
  Node node;
  node.id = NodeOf(parts);
  node.attributes = inode.attributes;
  node.nlink = inode.nlink;
  SetSize(node, size);
  return node;
}

Result<Node> ViewImpl::VirtualNodeFor(const NodeParts& parts) {
  ASSIGN_OR_RETURN(const Attributes memory, MemoryAttributes(parts.stream));
  Node node;
  node.id = IdOf(parts);
  node.cacheable = IsVirtualDirectory(*parts.kind);
  node.attributes = VirtualAttributes(*parts.kind, memory);
  node.nlink = 1;
  if (parts.kind == VirtualKind::kStatus) {
    ASSIGN_OR_RETURN(const std::string status, RenderStatus(parts.stream));
    SetSize(node, status.size());
  } else if (parts.kind == VirtualKind::kChain) {
    ASSIGN_OR_RETURN(const uint64_t size, ChainSize(volume_.io(), parts.stream));
    SetSize(node, size);
  } else {
    node.nlink = 2;
    for (const LayoutEntry& entry : LayoutEntries(parts)) node.nlink += entry.is_directory;
  }
  return node;
}

Result<Attributes> ViewImpl::MemoryAttributes(StreamId stream) {
  if (stream.value != 0) {
    ASSIGN_OR_RETURN(const volume::Inode memory, volume_.GetInode(stream, kRootInode));
    return memory.attributes;
  }
  Attributes mount;
  mount.mode = S_IFDIR | 0755;
  mount.uid = ::getuid();
  mount.gid = ::getgid();
  mount.atime = mount.mtime = mount.ctime = mount.btime = opened_at_;
  return mount;
}

Result<std::string> ViewImpl::RenderStatus(StreamId stream) {
  for (const volume::AgentFacts& agent : volume_.ListAgents()) {
    if (agent.stream == stream) return core_->RenderStatus(agent.name);
  }
  return Status(Code::kNotFound, "no such agent");
}

Result<NodeParts> ViewImpl::Child(const NodeParts& parent, std::string_view name) {
  if (parent.kind == VirtualKind::kRoot) {
    ASSIGN_OR_RETURN(const volume::AgentFacts agent, volume_.FindAgent(std::string(name)));
    return NodeParts{agent.stream, InodeId{}, VirtualKind::kAgent};
  }
  if (parent.kind) {
    for (const LayoutEntry& entry : LayoutEntries(parent)) {
      if (entry.name == name) return entry.node;
    }
    return Status(Code::kNotFound, "no such name");
  }
  if (IsShared(parent, name)) return NodeParts{parent.stream, InodeId{}, VirtualKind::kShared};
  ASSIGN_OR_RETURN(const volume::Entry entry, volume_.Lookup(parent.stream, parent.ino, name));
  return NodeParts{parent.stream, entry.ino, std::nullopt};
}

Result<Node> ViewImpl::Lookup(NodeId parent, std::string_view name) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(parent));
  TRY(CheckFileName(name));
  if (parts.kind && !IsVirtualDirectory(*parts.kind)) {
    return Status(Code::kNotDirectory, "not a directory");
  }
  ASSIGN_OR_RETURN(const NodeParts child, Child(parts, name));
  return NodeFor(child);
}

Result<Node> ViewImpl::GetAttributes(NodeId node) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  Result<Node> found = NodeFor(parts);
  if (found.code() == Code::kNotFound) return Status(Code::kStale, "the inode is gone");
  return found;
}

Result<std::string> ViewImpl::ReadLink(NodeId node) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  if (parts.kind) return Status(Code::kInvalidArgument, "not a symbolic link");
  return volume_.ReadLink(parts.stream, parts.ino);
}

Result<FileSystemFacts> ViewImpl::StatFileSystem(NodeId) {
  ASSIGN_OR_RETURN(const SpaceFacts space, volume_.Space());
  FileSystemFacts facts;
  facts.block_size = space.block_size;
  facts.blocks = space.total_blocks;
  facts.available_blocks = space.available_blocks;
  facts.files = space.total_files;
  facts.available_files = space.available_files;
  return facts;
}

void ViewImpl::NotifyEntry(const NodeParts& parent, const std::string& name) {
  core_->notifications().Post(id_, parent.stream, Event{Event::Kind::kEntry, NodeOf(parent), name});
}

void ViewImpl::NotifyContent(const NodeParts& node) {
  core_->notifications().Post(id_, node.stream, Event{Event::Kind::kContent, NodeOf(node), {}});
}

void ViewImpl::NotifyAttributes(const NodeParts& node) {
  core_->notifications().Post(id_, node.stream, Event{Event::Kind::kAttributes, NodeOf(node), {}});
}

// The agent's directory is the root of the mounts that show this agent alone.
void ViewImpl::NotifyLayout(StreamId stream) {
  for (const NodeId node :
       {kRootNode, VirtualNode(stream, VirtualKind::kAgent),
        VirtualNode(stream, VirtualKind::kMemoir), VirtualNode(stream, VirtualKind::kShared)}) {
    core_->notifications().Post(id_, stream, Event{Event::Kind::kAttributes, node, {}});
    if (notifier_ != nullptr) notifier_->AttributesChanged(node);
  }
}

}  // namespace memoirfs::vfs
