#include "fs/vfs/node_id.h"

#include <catch2/catch.hpp>

namespace memoirfs::vfs {
namespace {

TEST_CASE("A node's number and its parts are functions of each other") {
  const NodeParts real{StreamId{7}, InodeId{(uint64_t{1} << 40) - 1}, std::nullopt};
  CHECK(PartsOf(NodeOf(real)) == real);
  for (int kind = 2; kind <= static_cast<int>(VirtualKind::kShared); ++kind) {
    const NodeParts parts{StreamId{(1U << 24) - 1}, InodeId{}, static_cast<VirtualKind>(kind)};
    CHECK(PartsOf(NodeOf(parts)) == parts);
  }
  CHECK(NodeOf(NodeParts{{}, {}, VirtualKind::kRoot}) == kRootNode);
}

TEST_CASE("Numbers that no node has are told apart") {
  for (const uint64_t number : {uint64_t{0}, uint64_t{2}, uint64_t{7}, uint64_t{1} << 8 | 9,
                                uint64_t{1} << 8 | 1, uint64_t{3} << 40}) {
    CHECK_FALSE(PartsOf(NodeId{number}).has_value());
  }
}

}  // namespace
}  // namespace memoirfs::vfs
