#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "store/cas/chunk_tree.h"
#include "tests/support/stored_objects.h"

namespace memoirfs::cas {
namespace {

using testing::StoredObjects;

constexpr uint64_t kSeed = 20240607;

// Bytes that differ from place to place, with stretches of zeros when `sparse`.
Bytes MakeBytes(size_t size, bool sparse) {
  std::mt19937_64 random(kSeed);
  Bytes bytes(size, '\0');
  for (size_t at = 0; at < size; ++at) {
    const bool in_gap = sparse && (at / kChunkSize) % 2 == 1;
    bytes[at] = in_gap ? '\0' : static_cast<char>(1 + random() % 255);
  }
  return bytes;
}

// Stores bytes in the canonical form.
ContentId StoreContent(StoredObjects& store, ByteView bytes) {
  if (bytes.size() <= kChunkSize) {
    return {store.AddBlob(bytes), bytes.size(), ContentKind::kFlat};
  }
  ChunkTree tree(store.objects());
  for (uint64_t index = 0; index < ChunkCount(bytes.size()); ++index) {
    const ByteView chunk = bytes.substr(index * kChunkSize, ChunkLength(bytes.size(), index));
    if (!IsAllZeros(chunk)) REQUIRE(tree.SetChunk(index, store.AddBlob(chunk)).ok());
  }
  const auto id = tree.Seal(bytes.size(), store.Sink());
  REQUIRE(id.ok());
  return *id;
}

Bytes Read(StoredObjects& store, const ContentId& id, uint64_t offset, size_t size) {
  const auto bytes = ReadContent(store.objects(), id, offset, size);
  INFO(bytes.status().ToString());
  REQUIRE(bytes.ok());
  return *bytes;
}

}  // namespace

TEST_CASE("chunks of a file are full but for the last") {
  CHECK(ChunkCount(0) == 0);
  CHECK(ChunkCount(kChunkSize) == 1);
  CHECK(ChunkCount(kChunkSize + 1) == 2);
  CHECK(ChunkLength(kChunkSize + 1, 0) == kChunkSize);
  CHECK(ChunkLength(kChunkSize + 1, 1) == 1);
  CHECK(ChunkLength(kChunkSize + 1, 2) == 0);
  CHECK(ChunkCount(~0ULL) == (1ULL << 46));
}

TEST_CASE("only zeros are all zeros") {
  CHECK(IsAllZeros(""));
  CHECK(IsAllZeros(Bytes(1, '\0')));
  CHECK(IsAllZeros(Bytes(kChunkSize, '\0')));
  for (const size_t at : {0U, 1U, 4095U, 4999U}) {
    Bytes bytes(5000, '\0');
    bytes[at] = 1;
    CHECK(!IsAllZeros(bytes));
  }
}

TEST_CASE("any range of a content is read, and fewer bytes at its end") {
  StoredObjects store;
  for (const bool sparse : {false, true}) {
    for (const size_t size :
         {size_t{0}, size_t{1}, kChunkSize, kChunkSize + 1, 4 * kChunkSize + 9}) {
      const Bytes bytes = MakeBytes(size, sparse);
      const ContentId id = StoreContent(store, bytes);
      for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, kChunkSize - 1, kChunkSize,
                                    3 * kChunkSize + 5, uint64_t{size}}) {
        for (const size_t length : {size_t{0}, size_t{1}, size_t{4096}, 2 * kChunkSize + 1}) {
          INFO("size " << size << ", " << length << " at " << offset << ", sparse " << sparse);
          const Bytes expected = offset < size ? bytes.substr(offset, length) : Bytes();
          CHECK(Read(store, id, offset, length) == expected);
        }
      }
      CHECK(Read(store, id, ~0ULL, 10).empty());
    }
  }
}

TEST_CASE("a damaged chunk makes exactly its own range unreadable") {
  StoredObjects store(0);
  const Bytes bytes = MakeBytes(4 * kChunkSize, false);
  const ContentId id = StoreContent(store, bytes);
  store.DamagePayload(Sha256::Of(ByteView(bytes).substr(kChunkSize, kChunkSize)), 100);
  CHECK(Read(store, id, 0, kChunkSize) == bytes.substr(0, kChunkSize));
  CHECK(Read(store, id, 2 * kChunkSize, kChunkSize) == bytes.substr(2 * kChunkSize, kChunkSize));
  CHECK(ReadContent(store.objects(), id, kChunkSize, 1).code() == Code::kCorrupt);
  CHECK(ReadContent(store.objects(), id, 2 * kChunkSize - 1, 1).code() == Code::kCorrupt);
  CHECK(ReadContent(store.objects(), id, kChunkSize - 1, 2).code() == Code::kCorrupt);
}

TEST_CASE("an object of another length than the content says is corrupt") {
  StoredObjects store;
  const Digest digest = store.AddBlob("12345");
  CHECK(ReadContent(store.objects(), {digest, 5, ContentKind::kFlat}, 0, 5).ok());
  CHECK(ReadContent(store.objects(), {digest, 6, ContentKind::kFlat}, 0, 5).code() ==
        Code::kCorrupt);
  ChunkTree tree(store.objects());
  REQUIRE(tree.SetChunk(0, digest).ok());
  const auto id = tree.Seal(2 * kChunkSize, store.Sink());
  REQUIRE(id.ok());
  CHECK(ReadContent(store.objects(), *id, 0, 5).code() == Code::kCorrupt);
}

TEST_CASE("a content of the wrong kind for its size is corrupt") {
  StoredObjects store;
  const Digest digest = store.AddBlob("12345");
  const auto code_of = [&](const ContentId& id) {
    return ReadContent(store.objects(), id, 0, 5).code();
  };
  CHECK(code_of({digest, 5, ContentKind::kTree}) == Code::kCorrupt);
  CHECK(code_of({digest, kChunkSize + 1, ContentKind::kFlat}) == Code::kCorrupt);
}

TEST_CASE("a resized content is the one that its bytes would have been stored as") {
  StoredObjects store;
  const std::vector<size_t> sizes = {0,
                                     1,
                                     1000,
                                     kChunkSize - 1,
                                     kChunkSize,
                                     kChunkSize + 1,
                                     kChunkSize + 1000,
                                     2 * kChunkSize,
                                     3 * kChunkSize - 1,
                                     5 * kChunkSize + 77};
  for (const bool sparse : {false, true}) {
    for (const size_t from : sizes) {
      const Bytes bytes = MakeBytes(from, sparse);
      const ContentId id = StoreContent(store, bytes);
      for (const size_t to : sizes) {
        INFO("from " << from << " to " << to << ", sparse " << sparse);
        const auto resized = ResizeContent(store.objects(), id, to, store.Sink());
        REQUIRE(resized.ok());
        Bytes expected = bytes;
        expected.resize(to);
        CHECK(Read(store, *resized, 0, to) == expected);
        if (to == 0) {
          CHECK(*resized == EmptyContent());
        } else {
          CHECK(*resized == StoreContent(store, expected));
        }
      }
    }
  }
}

TEST_CASE("resizing emits one chunk and the changed nodes, whatever the size") {
  StoredObjects store;
  const ContentId id = StoreContent(store, MakeBytes(6 * kChunkSize + 5, false));
  const auto count_objects = [&](uint64_t new_size) {
    size_t emitted = 0;
    const auto resized =
        ResizeContent(store.objects(), id, new_size, [&](const Digest&, const Buffer&) {
          ++emitted;
          return Status();
        });
    REQUIRE(resized.ok());
    return emitted;
  };
  CHECK(count_objects(id.size) == 0);
  CHECK(count_objects(6 * kChunkSize) == 1);
  CHECK(count_objects(6 * kChunkSize + 1) == 2);
  CHECK(count_objects(3 * kChunkSize + 1) == 2);
  CHECK(count_objects(1000) == 1);
  CHECK(count_objects(4ULL << 40) == 4);  // the last chunk, filled up, and three levels
}

TEST_CASE("resizing does not read what it keeps") {
  StoredObjects store(0);
  const Bytes bytes = MakeBytes(4 * kChunkSize + 5, false);
  const ContentId id = StoreContent(store, bytes);
  store.DamagePayload(Sha256::Of(ByteView(bytes).substr(kChunkSize, kChunkSize)), 100);
  const EmitObject sink = store.Sink();
  CHECK(ResizeContent(store.objects(), id, 3 * kChunkSize, sink).ok());
  CHECK(ResizeContent(store.objects(), id, 3 * kChunkSize + 1, sink).ok());
  CHECK(ResizeContent(store.objects(), id, 9 * kChunkSize, sink).ok());
  CHECK(ResizeContent(store.objects(), id, kChunkSize + 9, sink).code() == Code::kCorrupt);
}

TEST_CASE("a failure to store what resizing emits is returned") {
  StoredObjects store;
  const ContentId id = StoreContent(store, MakeBytes(2 * kChunkSize, false));
  const auto full = [](const Digest&, const Buffer&) { return Status(Code::kNoSpace, "full"); };
  CHECK(ResizeContent(store.objects(), id, 10, full).code() == Code::kNoSpace);
  CHECK(ResizeContent(store.objects(), id, kChunkSize + 10, full).code() == Code::kNoSpace);
}

}  // namespace memoirfs::cas
