// Tree nodes from bytes: whatever decodes must encode to the same bytes.

#include <cstdlib>

#include "store/cas/tree_node.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const memoirfs::ByteView bytes(reinterpret_cast<const char*>(data), size);
  const auto node = memoirfs::cas::TreeNode::Decode(bytes);
  if (node.ok() && node->Encode() != bytes) std::abort();
  return 0;
}
