#include "store/cas/tree_node.h"

#include <catch2/catch.hpp>

namespace memoirfs::cas {
namespace {

TreeNode SomeNode() { return {2, {Sha256::Of("a"), Digest(), Sha256::Of("b")}}; }

}  // namespace

TEST_CASE("a tree node decodes to what was encoded") {
  for (const TreeNode& node :
       {SomeNode(), TreeNode{0, {}}, TreeNode{4, {Sha256::Of("x")}},
        TreeNode{0, std::vector<Digest>(TreeNode::kFanOut, Sha256::Of("y"))}}) {
    const Bytes bytes = node.Encode();
    CHECK(bytes.size() == TreeNode::kHeaderSize + node.digests.size() * Digest::kSize);
    const auto decoded = TreeNode::Decode(bytes);
    REQUIRE(decoded.ok());
    CHECK(decoded->level == node.level);
    CHECK(decoded->digests == node.digests);
  }
}

TEST_CASE("bytes that are not the one encoding of a node are refused") {
  const Bytes good = SomeNode().Encode();
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK(TreeNode::Decode(ByteView(good).substr(0, size)).code() == Code::kCorrupt);
  }
  CHECK(TreeNode::Decode(good + '\0').code() == Code::kCorrupt);
  for (size_t at = 0; at < TreeNode::kHeaderSize; ++at) {
    Bytes bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    INFO("byte " << at);
    CHECK(TreeNode::Decode(bad).code() == Code::kCorrupt);
  }
  CHECK(TreeNode::Decode(TreeNode{0, {Digest()}}.Encode()).code() == Code::kCorrupt);
  const std::vector<Digest> too_many(TreeNode::kFanOut + 1, Sha256::Of("y"));
  CHECK(TreeNode::Decode(TreeNode{0, too_many}.Encode()).code() == Code::kCorrupt);
}

TEST_CASE("a root is as high as its chunks need") {
  CHECK(RootLevelOf(1) == 0);
  CHECK(RootLevelOf(1024) == 0);
  CHECK(RootLevelOf(1025) == 1);
  CHECK(RootLevelOf(1024 * 1024) == 1);
  CHECK(RootLevelOf(1024 * 1024 + 1) == 2);
  CHECK(RootLevelOf(~0ULL / kChunkSize) == 4);
}

TEST_CASE("a node has no more digests than the file has chunks under it") {
  CHECK(MaxDigests(0, 0, 3) == 3);
  CHECK(MaxDigests(0, 0, 5000) == 1024);
  CHECK(MaxDigests(0, 4096, 5000) == 904);
  CHECK(MaxDigests(0, 5000, 5000) == 0);
  CHECK(MaxDigests(1, 0, 1025) == 2);
  CHECK(MaxDigests(1, 0, 1024) == 1);
}

}  // namespace memoirfs::cas
