#pragma once

// A node of a chunk tree as an object: header and digests. Byte layout: store/FORMAT.md "Tree
// nodes". There is one encoding of each node, and only that one decodes, so that equal trees have
// equal digests.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/digest.h"
#include "store/base/status.h"
#include "store/cas/object_store.h"

namespace memoirfs::cas {

struct TreeNode {
  static constexpr size_t kFanOut = 1024;
  static constexpr unsigned kMaxLevel = 4;  // 1,024^5 chunks: more than 2^63 bytes
  static constexpr size_t kHeaderSize = 8;

  unsigned level = 0;           // 0: the digests are those of chunks; else of nodes one level down
  std::vector<Digest> digests;  // zeros for a hole, never at the end

  Bytes Encode() const;
  // kCorrupt for anything that Encode does not make.
  static Result<TreeNode> Decode(ByteView bytes);
};

// Chunks under one digest of a node of this level.
constexpr uint64_t SpanOf(unsigned level) {
  uint64_t span = 1;
  for (unsigned i = 0; i < level; ++i) span *= TreeNode::kFanOut;
  return span;
}

// Chunks under a whole node of this level.
constexpr uint64_t CapacityOf(unsigned level) { return SpanOf(level) * TreeNode::kFanOut; }

// The level of the root of a tree of so many chunks: the lowest that has room for them.
constexpr unsigned RootLevelOf(uint64_t chunks) {
  unsigned level = 0;
  while (level < TreeNode::kMaxLevel && CapacityOf(level) < chunks) ++level;
  return level;
}

// The most digests that a node of this level may have whose first chunk is number `first` of
// `chunks`.
constexpr uint64_t MaxDigests(unsigned level, uint64_t first, uint64_t chunks) {
  if (first >= chunks) return 0;
  const uint64_t span = SpanOf(level);
  return std::min<uint64_t>((chunks - first + span - 1) / span, TreeNode::kFanOut);
}

// The verified node `digest`. kCorrupt too when it is not of this level, has more digests than
// `max_digests`, or is a hole that should have been none (only a root may be empty).
Result<TreeNode> LoadTreeNode(ObjectStore& objects, const Digest& digest, unsigned level,
                              uint64_t max_digests, bool is_root);

}  // namespace memoirfs::cas
