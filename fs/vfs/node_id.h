#pragma once

// Node numbers of the kernel, both ways, without any table: a real node is its stream and its
// inode, a virtual one its agent's stream and its kind.

#include <optional>

#include "fs/vfs/vfs.h"
#include "store/base/types.h"

namespace memoirfs::vfs {

enum class VirtualKind : uint8_t {
  kRoot = 1,    // of a mount of all agents
  kAgent = 2,   // <agent>/, and the root of a mount of one agent
  kMemoir = 3,  // .memoir/
  kStatus = 4,  // .memoir/status.json
  kChain = 5,   // .memoir/chain.jsonl
  kShared = 6,  // memory/shared/
};

struct NodeParts {
  StreamId stream;  // 0 for kRoot only
  InodeId ino;      // 0 for virtual nodes
  std::optional<VirtualKind> kind;
  friend bool operator==(const NodeParts&, const NodeParts&) = default;
};

inline constexpr int kKindBits = 8;
inline constexpr NodeId kRootNode{1};

constexpr NodeId RealNode(StreamId stream, InodeId ino) {
  return NodeId{uint64_t{stream.value} << kInodeBits | ino.value};
}

constexpr NodeId VirtualNode(StreamId stream, VirtualKind kind) {
  return NodeId{uint64_t{stream.value} << kKindBits | static_cast<uint64_t>(kind)};
}

constexpr NodeId NodeOf(const NodeParts& parts) {
  return parts.kind ? VirtualNode(parts.stream, *parts.kind) : RealNode(parts.stream, parts.ino);
}

// nullopt for a number that no node has.
constexpr std::optional<NodeParts> PartsOf(NodeId node) {
  const uint64_t stream = node.value >> kInodeBits;
  if (stream != 0) {
    const uint64_t ino = node.value & ((uint64_t{1} << kInodeBits) - 1);
    if (ino == 0) return std::nullopt;
    return NodeParts{StreamId{static_cast<uint32_t>(stream)}, InodeId{ino}, std::nullopt};
  }
  const uint64_t kind = node.value & ((uint64_t{1} << kKindBits) - 1);
  const uint64_t agent = node.value >> kKindBits;
  const bool is_root = kind == static_cast<uint64_t>(VirtualKind::kRoot);
  const bool known = kind >= 1 && kind <= static_cast<uint64_t>(VirtualKind::kShared);
  if (!known || is_root != (agent == 0)) return std::nullopt;
  return NodeParts{StreamId{static_cast<uint32_t>(agent)}, InodeId{},
                   static_cast<VirtualKind>(kind)};
}

}  // namespace memoirfs::vfs
