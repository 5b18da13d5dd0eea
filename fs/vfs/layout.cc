#include "fs/vfs/layout.h"

namespace memoirfs::vfs {
namespace {

LayoutEntry Virtual(std::string_view name, StreamId stream, VirtualKind kind) {
  return {name, NodeParts{stream, InodeId{}, kind}, IsVirtualDirectory(kind)};
}

}  // namespace

std::vector<LayoutEntry> LayoutEntries(const NodeParts& directory) {
  const StreamId stream = directory.stream;
  if (directory.kind == VirtualKind::kAgent) {
    return {{kMemoryName, NodeParts{stream, kRootInode, std::nullopt}, true},
            Virtual(".memoir", stream, VirtualKind::kMemoir)};
  }
  if (directory.kind == VirtualKind::kMemoir) {
    return {Virtual("status.json", stream, VirtualKind::kStatus),
            Virtual("chain.jsonl", stream, VirtualKind::kChain)};
  }
  return {};
}

bool IsVirtualDirectory(VirtualKind kind) {
  return kind != VirtualKind::kStatus && kind != VirtualKind::kChain;
}

bool IsShared(const NodeParts& parent, std::string_view name) {
  return !parent.kind && parent.ino == kRootInode && name == kSharedName;
}

Attributes VirtualAttributes(VirtualKind kind, const Attributes& memory) {
  Attributes attributes = memory;
  if (!IsVirtualDirectory(kind)) {
    attributes.mode = S_IFREG | (memory.mode & 0444);
    return attributes;
  }
  attributes.mode = S_IFDIR | (memory.mode & 0555);
  attributes.atime = attributes.mtime = attributes.ctime = memory.btime;
  return attributes;
}

}  // namespace memoirfs::vfs
