#pragma once

// The tree of a file above 256 KiB: fixed chunks of kChunkSize under nodes of up to 1,024 digests,
// as many levels as the size needs. A hole is a digest of zeros, at any level. The root's digest
// names the content (with its size and ContentKind::kTree). Byte layout: store/FORMAT.md "Tree
// nodes".

#include <cstdint>
#include <functional>
#include <memory>

#include "store/base/digest.h"
#include "store/cas/object_store.h"

namespace memoirfs::cas {

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

  // Emits each changed node, children before parents, and returns the id of the content of `size`
  // bytes. The tree is unchanged by then and goes on.
  using EmitNode = std::function<Status(const Digest& digest, Buffer bytes)>;
  Result<ContentId> Seal(uint64_t size, const EmitNode& emit);

  // Visits every node and chunk digest below `id`, nodes first, each once in order: for verify and
  // collection. `length` is what the object must have, 0 for a node.
  using Visit = std::function<Status(const Digest& digest, bool is_node, uint64_t length)>;
  static Status ForEachObject(ObjectStore& objects, const ContentId& id, const Visit& visit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads `size` bytes at `offset` of committed content, holes as zeros, fewer at the end. Every
// object it touches is verified; kCorrupt for exactly the range whose object does not verify.
Result<Bytes> ReadContent(ObjectStore& objects, const ContentId& id, uint64_t offset, size_t size);

}  // namespace memoirfs::cas
