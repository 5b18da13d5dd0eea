#pragma once

// What a mount shows around the trees of the streams: which virtual nodes there are, under which
// names, and what stat(2) says of them. See fs/README.md "What a mount shows".

#include <string_view>
#include <vector>

#include "fs/vfs/node_id.h"
#include "store/base/attributes.h"

namespace memoirfs::vfs {

inline constexpr std::string_view kMemoryName = "memory";
inline constexpr std::string_view kSharedName = "shared";

struct LayoutEntry {
  std::string_view name;
  NodeParts node;
  bool is_directory = false;
};

// The fixed entries of a virtual directory; none for kRoot, whose entries are the agents.
std::vector<LayoutEntry> LayoutEntries(const NodeParts& directory);

bool IsVirtualDirectory(VirtualKind kind);

// True for the entry "shared" of a stream's root directory, which is virtual.
bool IsShared(const NodeParts& parent, std::string_view name);

// Owner and read permissions are those of the agent's memory/, so that who may not read the one may
// not read the other; nothing is writable. A virtual directory never changes, so its times are
// those of the memory's creation, and work in the memory leaves its attributes cached.
Attributes VirtualAttributes(VirtualKind kind, const Attributes& memory);

}  // namespace memoirfs::vfs
