// Listings. An entry's offset says where the listing goes on behind it: 1 and 2 are behind "." and
// "..", and the rest follow in an order that does not change while entries come and go: cookies of
// the volume, numbers of streams, places in the layout.

#include <map>

#include "fs/vfs/view_impl.h"

namespace memoirfs::vfs {
namespace {

constexpr uint64_t kBehindDots = 2;
// memory/shared stands before the entries of the stream, whose cookies begin at 1.
constexpr uint64_t kBehindShared = kBehindDots + 1;
constexpr size_t kPage = 128;

}  // namespace

Status ViewImpl::ReadDirectory(NodeId node, uint64_t offset, bool with_attributes,
                               const AddEntry& add) {
  ASSIGN_OR_RETURN(const NodeParts parts, Resolve(node));
  if (!AddDots(parts, offset, add)) return {};
  if (!parts.kind) return ListStream(parts, offset, with_attributes, add);
  if (parts.kind == VirtualKind::kRoot) return ListAgents(offset, with_attributes, add);
  if (IsVirtualDirectory(*parts.kind)) return ListLayout(parts, offset, with_attributes, add);
  return Status(Code::kNotDirectory, "not a directory");
}

bool ViewImpl::AddDots(const NodeParts& directory, uint64_t offset, const AddEntry& add) {
  DirectoryEntry entry{".", {}, 1};
  entry.node.id = IdOf(directory);
  entry.node.attributes.mode = S_IFDIR;
  if (offset < entry.next_offset && !add(entry)) return false;
  entry.name = "..";
  entry.next_offset = kBehindDots;
  if (offset >= entry.next_offset) return true;
  entry.node.id = IdOf(ParentOf(directory));
  return add(entry);
}

// The root of a mount is its own parent.
NodeParts ViewImpl::ParentOf(const NodeParts& directory) {
  const StreamId stream = directory.stream;
  const NodeParts agent{stream, InodeId{}, VirtualKind::kAgent};
  if (directory.kind == VirtualKind::kShared) return {stream, kRootInode, std::nullopt};
  if (directory.kind == VirtualKind::kMemoir) return agent;
  if (directory.kind) return only_ ? directory : NodeParts{{}, {}, VirtualKind::kRoot};
  if (directory.ino == kRootInode) return agent;
  const Result<volume::Inode> inode = volume_.GetInode(stream, directory.ino);
  return {stream, inode.ok() ? inode->parent : directory.ino, std::nullopt};
}

// False when the listing is to end. An entry that went away meanwhile is left out.
bool ViewImpl::AddChild(const NodeParts& node, const std::string& name, uint32_t type,
                        uint64_t next_offset, bool with_attributes, const AddEntry& add) {
  DirectoryEntry entry{name, {}, next_offset};
  entry.node.id = IdOf(node);
  entry.node.attributes.mode = type;
  if (with_attributes) {
    Result<Node> found = NodeFor(node);
    if (!found.ok()) return true;
    entry.node = *std::move(found);
  }
  return add(entry);
}

Status ViewImpl::ListStream(const NodeParts& directory, uint64_t offset, bool with_attributes,
                            const AddEntry& add) {
  if (directory.ino == kRootInode && offset < kBehindShared) {
    const NodeParts shared{directory.stream, InodeId{}, VirtualKind::kShared};
    if (!AddChild(shared, std::string(kSharedName), S_IFDIR, kBehindShared, with_attributes, add)) {
      return {};
    }
  }
  Cookie after{offset > kBehindShared ? offset - kBehindShared : 0};
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<volume::Entry> page,
                     volume_.List(directory.stream, directory.ino, after, kPage));
    for (const volume::Entry& entry : page) {
      const NodeParts child{directory.stream, entry.ino, std::nullopt};
      if (!AddChild(child, entry.name, entry.type, entry.cookie.value + kBehindShared,
                    with_attributes, add)) {
        return {};
      }
      after = entry.cookie;
    }
    if (page.size() < kPage) return {};
  }
}

Status ViewImpl::ListAgents(uint64_t offset, bool with_attributes, const AddEntry& add) {
  std::map<StreamId, std::string> agents;
  for (const volume::AgentFacts& agent : volume_.ListAgents()) {
    if (!agent.removed) agents.emplace(agent.stream, agent.name);
  }
  for (const auto& [stream, name] : agents) {
    const uint64_t next = stream.value + kBehindDots;
    const NodeParts agent{stream, InodeId{}, VirtualKind::kAgent};
    if (next > offset && !AddChild(agent, name, S_IFDIR, next, with_attributes, add)) break;
  }
  return {};
}

Status ViewImpl::ListLayout(const NodeParts& directory, uint64_t offset, bool with_attributes,
                            const AddEntry& add) {
  uint64_t next = kBehindDots;
  for (const LayoutEntry& entry : LayoutEntries(directory)) {
    ++next;
    const uint32_t type = entry.is_directory ? S_IFDIR : S_IFREG;
    if (next > offset &&
        !AddChild(entry.node, std::string(entry.name), type, next, with_attributes, add)) {
      break;
    }
  }
  return {};
}

}  // namespace memoirfs::vfs
