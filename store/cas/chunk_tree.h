#pragma once

// The tree of a file above 256 KiB: fixed chunks of kChunkSize under nodes of up to 1,024 digests,
// as many levels as the size needs. A hole is a digest of zeros, at any level but the root. The
// root's digest names the content (with its size and ContentKind::kTree). Byte layout:
// store/FORMAT.md "Tree nodes".
//
// Canonical form, so that a content id depends on nothing but the bytes: content of up to
// kChunkSize is flat, whatever it holds; above that it is a tree whose chunks are full but for the
// last, which ends where the file ends, and whoever stores a chunk of nothing but zeros makes it a
// hole instead (IsAllZeros).

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "store/base/digest.h"
#include "store/cas/object_store.h"

namespace memoirfs::cas {

// Chunks of a file of `size` bytes, and the bytes of chunk `index` of it.
constexpr uint64_t ChunkCount(uint64_t size) {
  return size / kChunkSize + (size % kChunkSize != 0 ? 1 : 0);
}
constexpr uint64_t ChunkLength(uint64_t size, uint64_t index) {
  const uint64_t begin = index * kChunkSize;
  return begin >= size ? 0 : std::min(kChunkSize, size - begin);
}

// Whether these bytes, as a chunk, are a hole.
bool IsAllZeros(ByteView bytes);

// Takes a new object: it has to be stored before anything refers to it.
using EmitObject = std::function<Status(const Digest& digest, Buffer bytes)>;

// Loads nodes when they are needed, keeps changed ones until Seal. Not thread-safe; const methods
// load nodes too, so it needs one lock for all of them.
class ChunkTree {
 public:
  // No chunks: all holes.
  explicit ChunkTree(ObjectStore& objects);
  // Precondition: id.kind is kTree. Reads nothing yet.
  ChunkTree(ObjectStore& objects, const ContentId& id);
  ~ChunkTree();
  ChunkTree(ChunkTree&&) noexcept;
  ChunkTree& operator=(ChunkTree&&) noexcept;

  // The digest of chunk `index`; nullopt for a hole. kCorrupt when a node does not verify.
  Result<std::optional<Digest>> Chunk(uint64_t index);
  Status SetChunk(uint64_t index, const std::optional<Digest>& digest);
  // Drops every chunk from `count` on.
  Status Truncate(uint64_t count);
  // The first chunk at or behind `from` that is (not) a hole; nullopt when there is none before
  // `limit`. For SEEK_DATA and SEEK_HOLE: skips whole empty subtrees.
  Result<std::optional<uint64_t>> NextChunk(uint64_t from, uint64_t limit, bool hole);

  // Drops every chunk behind `size` (which must be above kChunkSize: kInvalidArgument), emits each
  // node that changed since the last Seal, children before parents, and returns the id of the
  // content. The tree is unchanged by then and goes on. What was emitted is taken as stored from
  // the next Seal on; until then the tree needs none of it back. Where emitting fails, the next
  // Seal emits all of it again.
  Result<ContentId> Seal(uint64_t size, const EmitObject& emit);

  // Visits every node and chunk digest below `id` in order, a node before what is under it: for
  // verify and collection. `length` is what the object must have, 0 for a node. A flat content is
  // one chunk; an empty one has no object. A subtree that occurs again is not visited again. Goes
  // on behind a node that does not load, and returns the first such failure at the end; a failure
  // of the visitor ends it.
  using Visit = std::function<Status(const Digest& digest, bool is_node, uint64_t length)>;
  static Status ForEachObject(ObjectStore& objects, const ContentId& id, const Visit& visit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads `size` bytes at `offset` of committed content, holes as zeros, fewer at the end. Every
// object it touches is verified; kCorrupt for exactly the range whose object does not verify.
Result<Bytes> ReadContent(ObjectStore& objects, const ContentId& id, uint64_t offset, size_t size);

// The same content cut or extended with zeros to `new_size`, between flat and tree as the size
// demands. Emits what is new: at most one chunk (or the flat object) and the changed nodes.
Result<ContentId> ResizeContent(ObjectStore& objects, const ContentId& id, uint64_t new_size,
                                const EmitObject& emit);

}  // namespace memoirfs::cas
