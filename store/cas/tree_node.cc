#include "store/cas/tree_node.h"

#include "store/base/coding.h"
#include "store/base/log.h"

namespace memoirfs::cas {
namespace {

// Keeps nodes and other objects apart: a file that begins so by chance is still no node, because
// whoever reads a node knows its digest and its level from above.
constexpr uint32_t kMagic = 0x4d46544e;  // "MFTN"
constexpr uint8_t kVersion = 1;

Status NotANode(const std::string& why) { return Status(Code::kCorrupt, "tree node: " + why); }

}  // namespace

Bytes TreeNode::Encode() const {
  Encoder out;
  out.U32(kMagic).U8(kVersion).U8(static_cast<uint8_t>(level));
  out.U16(static_cast<uint16_t>(digests.size()));
  for (const Digest& digest : digests) out.Hash(digest);
  return out.Take();
}

Result<TreeNode> TreeNode::Decode(ByteView bytes) {
  Decoder in(bytes);
  if (in.U32() != kMagic) return NotANode("it does not begin as one");
  if (in.U8() != kVersion) return NotANode("an unknown version");
  TreeNode node;
  node.level = in.U8();
  if (node.level > kMaxLevel) return NotANode("level " + std::to_string(node.level));
  const size_t count = in.U16();
  if (count > kFanOut || in.rest().size() != count * Digest::kSize) {
    return NotANode(std::to_string(count) + " digests in " + std::to_string(bytes.size()) +
                    " bytes");
  }
  node.digests.reserve(count);
  for (size_t i = 0; i < count; ++i) node.digests.push_back(in.Hash());
  if (!in.Done()) return NotANode("it is cut off");
  if (count > 0 && node.digests.back().IsZero()) return NotANode("a hole at its end");
  return node;
}

Result<TreeNode> LoadTreeNode(ObjectStore& objects, const Digest& digest, unsigned level,
                              uint64_t max_digests, bool is_root) {
  ASSIGN_OR_RETURN(const Buffer bytes, objects.Get(digest));
  auto node = TreeNode::Decode(*bytes);
  Status fault = node.status();
  if (fault.ok() && node->level != level) {
    fault = NotANode("level " + std::to_string(node->level) + " in the place of level " +
                     std::to_string(level));
  } else if (fault.ok() && node->digests.size() > max_digests) {
    fault = NotANode("more digests than the file has chunks");
  } else if (fault.ok() && node->digests.empty() && !is_root) {
    fault = NotANode("an empty one that is not the root");
  }
  if (fault.ok()) return node;
  fault = fault.WithContext("object " + digest.ToHex());
  Log(LogLevel::kError, "cas.bad-node", fault.message());
  return fault;
}

}  // namespace memoirfs::cas
