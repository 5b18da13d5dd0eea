#include "store/cas/chunk_tree.h"

#include <catch2/catch.hpp>

#include "store/cas/tree_node.h"
#include "tests/support/stored_objects.h"

namespace memoirfs::cas {
namespace {

using testing::StoredObjects;

Digest D(uint64_t number) { return Sha256::Of(std::to_string(number)); }

uint64_t SizeOf(uint64_t chunks) { return chunks * kChunkSize; }

// Seals into the store, and counts the nodes.
struct Sealed {
  ContentId id;
  size_t nodes = 0;
};
Sealed Seal(StoredObjects& store, ChunkTree& tree, uint64_t size) {
  Sealed sealed;
  const EmitObject sink = store.Sink();
  const auto id = tree.Seal(size, [&](const Digest& digest, Buffer bytes) {
    ++sealed.nodes;
    return sink(digest, std::move(bytes));
  });
  REQUIRE(id.ok());
  sealed.id = *id;
  return sealed;
}

std::optional<Digest> ChunkOf(ChunkTree& tree, uint64_t index) {
  const auto chunk = tree.Chunk(index);
  INFO(chunk.status().ToString());
  REQUIRE(chunk.ok());
  return *chunk;
}

std::optional<uint64_t> Next(ChunkTree& tree, uint64_t from, uint64_t limit, bool hole) {
  const auto found = tree.NextChunk(from, limit, hole);
  REQUIRE(found.ok());
  return *found;
}

// A tree with these chunks, each with its own digest.
ChunkTree TreeOf(StoredObjects& store, const std::vector<uint64_t>& chunks) {
  ChunkTree tree(store.objects());
  for (const uint64_t index : chunks) REQUIRE(tree.SetChunk(index, D(index)).ok());
  return tree;
}

}  // namespace

TEST_CASE("what was sealed is read back by its id") {
  StoredObjects store;
  const std::vector<uint64_t> chunks = {0, 1, 1023, 1024, 5000, 1048575, 1048576};
  ChunkTree tree = TreeOf(store, chunks);
  const ContentId id = Seal(store, tree, SizeOf(1048577)).id;
  CHECK(id.kind == ContentKind::kTree);
  CHECK(id.size == SizeOf(1048577));
  ChunkTree again(store.objects(), id);
  for (const uint64_t index : chunks) CHECK(ChunkOf(again, index) == D(index));
  for (const uint64_t index : {2ULL, 1022ULL, 1025ULL, 4999ULL, 1048574ULL, 1ULL << 45}) {
    CHECK(ChunkOf(again, index) == std::nullopt);
  }
}

TEST_CASE("an id depends on the chunks and the size, not on how they came about") {
  StoredObjects store;
  ChunkTree straight = TreeOf(store, {0, 3, 2000});
  const ContentId id = Seal(store, straight, SizeOf(2001)).id;

  ChunkTree detour = TreeOf(store, {2'000'000, 2000, 1, 3, 0, 2001});
  REQUIRE(detour.SetChunk(1, std::nullopt).ok());
  Seal(store, detour, SizeOf(2'000'001));
  REQUIRE(detour.Truncate(2001).ok());
  CHECK(Seal(store, detour, SizeOf(2001)).id == id);

  ChunkTree other = TreeOf(store, {0, 3, 2000});
  CHECK(Seal(store, other, SizeOf(2001) - 1).id != id);
  ChunkTree higher = TreeOf(store, {0});
  ChunkTree lower = TreeOf(store, {0});
  CHECK(Seal(store, higher, SizeOf(1025)).id.digest != Seal(store, lower, SizeOf(1024)).id.digest);
}

TEST_CASE("sealing an unchanged tree emits nothing and gives the same id") {
  StoredObjects store;
  ChunkTree tree = TreeOf(store, {0, 5000});
  const Sealed first = Seal(store, tree, SizeOf(5001));
  CHECK(first.nodes == 3);
  const Sealed second = Seal(store, tree, SizeOf(5001));
  CHECK(second.nodes == 0);
  CHECK(second.id == first.id);
  ChunkTree loaded(store.objects(), first.id);
  REQUIRE(loaded.SetChunk(5000, D(5000)).ok());
  REQUIRE(loaded.SetChunk(77, std::nullopt).ok());
  REQUIRE(loaded.Truncate(5001).ok());
  const Sealed third = Seal(store, loaded, SizeOf(5001));
  CHECK(third.nodes == 0);
  CHECK(third.id == first.id);
}

TEST_CASE("a changed chunk costs the nodes on its path") {
  StoredObjects store;
  ChunkTree tree = TreeOf(store, {0, 5000, 3'000'000});
  Seal(store, tree, SizeOf(3'000'001));
  REQUIRE(tree.SetChunk(5000, D(1)).ok());
  CHECK(Seal(store, tree, SizeOf(3'000'001)).nodes == 3);
  REQUIRE(tree.SetChunk(5000, std::nullopt).ok());
  CHECK(Seal(store, tree, SizeOf(3'000'001)).nodes == 2);  // its own node is gone
}

TEST_CASE("a changed size within the last chunk changes no node") {
  StoredObjects store;
  ChunkTree tree = TreeOf(store, {0, 1});
  const ContentId before = Seal(store, tree, SizeOf(2) - 5).id;
  const Sealed after = Seal(store, tree, SizeOf(2) - 3);
  CHECK(after.nodes == 0);
  CHECK(after.id.digest == before.digest);
  CHECK(after.id.size == SizeOf(2) - 3);
}

TEST_CASE("truncation drops every chunk from its count on") {
  StoredObjects store;
  for (const uint64_t count :
       {0ULL, 1ULL, 1023ULL, 1024ULL, 1025ULL, 5000ULL, 5001ULL, 1ULL << 21}) {
    INFO("cut to " << count);
    ChunkTree tree = TreeOf(store, {0, 1022, 1023, 1024, 4999, 5000, 1048576});
    const bool sealed_before = count % 2 == 0;
    if (sealed_before) Seal(store, tree, SizeOf(1048577));
    REQUIRE(tree.Truncate(count).ok());
    for (const uint64_t index : {0ULL, 1022ULL, 1023ULL, 1024ULL, 4999ULL, 5000ULL, 1048576ULL}) {
      CHECK(ChunkOf(tree, index).has_value() == (index < count));
    }
  }
}

TEST_CASE("what was cut off does not come back when the file grows again") {
  StoredObjects store;
  ChunkTree tree = TreeOf(store, {0, 1, 2, 5000});
  const ContentId id = Seal(store, tree, SizeOf(5001)).id;
  ChunkTree loaded(store.objects(), id);
  REQUIRE(loaded.Truncate(2).ok());
  const ContentId grown = Seal(store, loaded, SizeOf(5001)).id;
  ChunkTree expected = TreeOf(store, {0, 1});
  CHECK(Seal(store, expected, SizeOf(5001)).id == grown);
}

TEST_CASE("a sparse file of terabytes costs a few nodes") {
  StoredObjects store;
  const uint64_t far = (8ULL << 40) / kChunkSize;  // 8 TiB
  ChunkTree tree = TreeOf(store, {far});
  const Sealed sealed = Seal(store, tree, SizeOf(far + 1));
  CHECK(sealed.nodes == 3);
  ChunkTree loaded(store.objects(), sealed.id);
  CHECK(Next(loaded, 0, far + 1, false) == far);
  CHECK(Next(loaded, 0, far + 1, true) == 0);
  REQUIRE(loaded.Truncate(far).ok());
  CHECK(Next(loaded, 0, far, false) == std::nullopt);
  ChunkTree empty(store.objects());
  CHECK(Seal(store, loaded, SizeOf(far)).id == Seal(store, empty, SizeOf(far)).id);
  CHECK(store.locations.finds() <= 6);
}

TEST_CASE("the next chunk and the next hole are found across subtrees") {
  StoredObjects store;
  ChunkTree tree(store.objects());
  for (uint64_t index = 1000; index < 3000; ++index) REQUIRE(tree.SetChunk(index, D(1)).ok());
  Seal(store, tree, SizeOf(3000));
  CHECK(Next(tree, 0, 5000, false) == 1000);
  CHECK(Next(tree, 1000, 5000, false) == 1000);
  CHECK(Next(tree, 2999, 5000, false) == 2999);
  CHECK(Next(tree, 3000, 5000, false) == std::nullopt);
  CHECK(Next(tree, 0, 1000, false) == std::nullopt);
  CHECK(Next(tree, 5, 5000, true) == 5);
  CHECK(Next(tree, 1000, 5000, true) == 3000);
  CHECK(Next(tree, 1000, 3000, true) == std::nullopt);
  CHECK(Next(tree, 1ULL << 30, 1ULL << 31, true) == 1ULL << 30);
  CHECK(Next(tree, 7, 7, true) == std::nullopt);

  ChunkTree full(store.objects());
  for (uint64_t index = 0; index < 1024; ++index) REQUIRE(full.SetChunk(index, D(1)).ok());
  CHECK(Next(full, 0, 5000, true) == 1024);
  CHECK(Next(full, 0, 1024, true) == std::nullopt);
}

TEST_CASE("changes in one subtree survive walks through the others") {
  StoredObjects store;
  ChunkTree tree = TreeOf(store, {0, 2000, 4000, 6000});
  ChunkTree loaded(store.objects(), Seal(store, tree, SizeOf(6001)).id);
  REQUIRE(loaded.SetChunk(1, D(77)).ok());
  for (const uint64_t index : {2000ULL, 4000ULL, 6000ULL, 2000ULL}) {
    CHECK(ChunkOf(loaded, index) == D(index));
  }
  CHECK(ChunkOf(loaded, 1) == D(77));
  const Sealed sealed = Seal(store, loaded, SizeOf(6001));
  CHECK(sealed.nodes == 2);
  ChunkTree expected = TreeOf(store, {0, 2000, 4000, 6000});
  REQUIRE(expected.SetChunk(1, D(77)).ok());
  CHECK(Seal(store, expected, SizeOf(6001)).id == sealed.id);
}

TEST_CASE("nodes whose storing failed are emitted again") {
  StoredObjects store;
  ChunkTree tree = TreeOf(store, {0, 2000});
  ChunkTree expected = TreeOf(store, {0, 2000});
  const ContentId id = Seal(store, expected, SizeOf(2001)).id;

  int emitted = 0;
  const auto failed = tree.Seal(SizeOf(2001), [&](const Digest&, const Buffer&) {
    return ++emitted == 2 ? Status(Code::kNoSpace, "full") : Status();
  });
  CHECK(failed.code() == Code::kNoSpace);
  const Sealed sealed = Seal(store, tree, SizeOf(2001));
  CHECK(sealed.nodes == 3);
  CHECK(sealed.id == id);
}

TEST_CASE("nodes in the wrong place are corrupt") {
  StoredObjects store;
  const auto content_of = [&](const TreeNode& root, uint64_t size) {
    return ContentId{store.AddBlob(root.Encode()), size, ContentKind::kTree};
  };
  const auto code_of = [&](const ContentId& id, uint64_t index) {
    ChunkTree tree(store.objects(), id);
    return tree.Chunk(index).code();
  };
  const Digest leaf = store.AddBlob(TreeNode{0, {D(1)}}.Encode());
  const Digest empty_leaf = store.AddBlob(TreeNode{0, {}}.Encode());

  CHECK(code_of(content_of({1, {leaf}}, SizeOf(1025)), 0) == Code::kOk);
  // A root that is too low or too high for the size.
  CHECK(code_of(content_of({0, {D(1)}}, SizeOf(1025)), 0) == Code::kCorrupt);
  CHECK(code_of(content_of({1, {leaf}}, SizeOf(2)), 0) == Code::kCorrupt);
  // More digests than chunks.
  CHECK(code_of(content_of({0, {D(1), D(2), D(3)}}, SizeOf(2)), 0) == Code::kCorrupt);
  CHECK(code_of(content_of({1, {leaf, leaf, leaf}}, SizeOf(1025)), 0) == Code::kCorrupt);
  // A child that is empty, of the wrong level, or no node at all.
  CHECK(code_of(content_of({1, {empty_leaf}}, SizeOf(1025)), 0) == Code::kCorrupt);
  const Digest inner = store.AddBlob(TreeNode{1, {leaf}}.Encode());
  CHECK(code_of(content_of({1, {inner}}, SizeOf(1025)), 0) == Code::kCorrupt);
  CHECK(code_of(content_of({1, {store.AddBlob("text")}}, SizeOf(1025)), 0) == Code::kCorrupt);
}

TEST_CASE("a damaged node stops reading, changing and searching, and nothing is lost") {
  StoredObjects store(0);  // no cache
  ChunkTree tree = TreeOf(store, {0, 2000});
  const ContentId id = Seal(store, tree, SizeOf(2001)).id;
  const auto root = TreeNode::Decode(*store.objects().Get(id.digest).value());
  store.DamagePayload(root->digests[1], Digest::kSize + 9);

  ChunkTree loaded(store.objects(), id);
  CHECK(ChunkOf(loaded, 0) == D(0));
  CHECK(loaded.Chunk(2000).code() == Code::kCorrupt);
  CHECK(loaded.SetChunk(1500, D(1)).code() == Code::kCorrupt);
  CHECK(loaded.SetChunk(2000, std::nullopt).code() == Code::kCorrupt);
  CHECK(loaded.NextChunk(1024, 2001, false).status().code() == Code::kCorrupt);
  CHECK(loaded.Truncate(1500).code() == Code::kCorrupt);
  const Sealed sealed = Seal(store, loaded, SizeOf(2001));
  CHECK(sealed.id == id);
  // Cutting off the whole damaged subtree needs nothing of it.
  REQUIRE(loaded.Truncate(1024).ok());
  CHECK(loaded.Chunk(2000).code() == Code::kOk);
}

TEST_CASE("what a tree can't be is refused") {
  StoredObjects store;
  ChunkTree tree(store.objects());
  CHECK(tree.SetChunk(0, Digest()).code() == Code::kInvalidArgument);
  CHECK(tree.SetChunk(1ULL << 50, D(1)).code() == Code::kTooLarge);
  const EmitObject sink = store.Sink();
  CHECK(tree.Seal(kChunkSize, sink).status().code() == Code::kInvalidArgument);
}

TEST_CASE("every object of a content is visited with the length that it must have") {
  StoredObjects store;
  ChunkTree tree = TreeOf(store, {0, 1024, 1026});
  const ContentId id = Seal(store, tree, SizeOf(1027) - 7).id;
  std::vector<std::pair<Digest, uint64_t>> seen;
  size_t nodes = 0;
  const auto visit = [&](const Digest& digest, bool is_node, uint64_t length) {
    if (is_node) {
      CHECK(length == 0);
      nodes++;
    } else {
      seen.emplace_back(digest, length);
    }
    return Status();
  };
  REQUIRE(ChunkTree::ForEachObject(store.objects(), id, visit).ok());
  CHECK(nodes == 3);
  CHECK(seen == std::vector<std::pair<Digest, uint64_t>>{
                    {D(0), kChunkSize}, {D(1024), kChunkSize}, {D(1026), kChunkSize - 7}});

  seen.clear();
  REQUIRE(ChunkTree::ForEachObject(store.objects(), {D(5), 10, ContentKind::kFlat}, visit).ok());
  CHECK(seen == std::vector<std::pair<Digest, uint64_t>>{{D(5), 10}});
  seen.clear();
  REQUIRE(ChunkTree::ForEachObject(store.objects(), EmptyContent(), visit).ok());
  CHECK(seen.empty());
}

TEST_CASE("a walk goes on behind a damaged node and says so at the end") {
  StoredObjects store(0);
  ChunkTree tree = TreeOf(store, {0, 1024, 2048});
  const ContentId id = Seal(store, tree, SizeOf(2049)).id;
  const auto root = TreeNode::Decode(*store.objects().Get(id.digest).value());
  store.DamagePayload(root->digests[1], Digest::kSize + 9);
  std::vector<Digest> chunks;
  const Status status = ChunkTree::ForEachObject(store.objects(), id,
                                                 [&](const Digest& digest, bool is_node, uint64_t) {
                                                   if (!is_node) chunks.push_back(digest);
                                                   return Status();
                                                 });
  CHECK(status.code() == Code::kCorrupt);
  CHECK(chunks == std::vector<Digest>{D(0), D(2048)});
}

TEST_CASE("a walk through nodes that refer to one node a thousand times ends soon") {
  StoredObjects store;
  Digest below = store.AddBlob(TreeNode{0, std::vector<Digest>(1024, D(1))}.Encode());
  for (unsigned level = 1; level <= 3; ++level) {
    below = store.AddBlob(TreeNode{level, std::vector<Digest>(1024, below)}.Encode());
  }
  size_t visits = 0;
  const ContentId id{below, SizeOf(1ULL << 40), ContentKind::kTree};
  const Status status =
      ChunkTree::ForEachObject(store.objects(), id, [&](const Digest&, bool, uint64_t) {
        ++visits;
        return Status();
      });
  CHECK(status.ok());
  CHECK(visits < 10'000);
}

}  // namespace memoirfs::cas
