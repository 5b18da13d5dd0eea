#include <cstring>
#include <utility>

#include "store/base/log.h"
#include "store/cas/chunk_tree.h"

namespace memoirfs::cas {
namespace {

// An object that must have `length` bytes.
Result<Buffer> GetOfLength(ObjectStore& objects, const Digest& digest, uint64_t length) {
  ASSIGN_OR_RETURN(Buffer bytes, objects.Get(digest));
  if (bytes->size() == length) return bytes;
  Status fault(Code::kCorrupt, "object " + digest.ToHex() + ": it has " +
                                   std::to_string(bytes->size()) + " bytes where the content has " +
                                   std::to_string(length));
  Log(LogLevel::kError, "cas.wrong-length", fault.message());
  return fault;
}

Status AppendChunks(ObjectStore& objects, const ContentId& id, uint64_t offset, uint64_t end,
                    Bytes& out) {
  ChunkTree tree(objects, id);
  while (offset < end) {
    const uint64_t index = offset / kChunkSize;
    const uint64_t begin = index * kChunkSize;
    const uint64_t length = ChunkLength(id.size, index);
    const uint64_t part = std::min(end - begin, length) - (offset - begin);
    ASSIGN_OR_RETURN(const std::optional<Digest> digest, tree.Chunk(index));
    if (digest) {
      ASSIGN_OR_RETURN(const Buffer chunk, GetOfLength(objects, *digest, length));
      out.append(*chunk, offset - begin, part);
    } else {
      out.append(part, '\0');
    }
    offset += part;
  }
  return {};
}

Status CheckKind(const ContentId& id) {
  const bool should_be_flat = id.size <= kChunkSize;
  if (should_be_flat == (id.kind == ContentKind::kFlat)) return {};
  return Status(Code::kCorrupt, "content " + id.digest.ToHex() + ": " + std::to_string(id.size) +
                                    " bytes can't be " + (should_be_flat ? "a tree" : "flat"));
}

// Stores the bytes as an object and returns its digest.
Result<Digest> Store(Bytes bytes, const EmitObject& emit) {
  const Digest digest = Sha256::Of(bytes);
  TRY(emit(digest, std::make_shared<const Bytes>(std::move(bytes))));
  return digest;
}

Result<ContentId> ResizeToFlat(ObjectStore& objects, const ContentId& id, uint64_t new_size,
                               const EmitObject& emit) {
  if (new_size == 0) return EmptyContent();
  ASSIGN_OR_RETURN(Bytes bytes, ReadContent(objects, id, 0, new_size));
  bytes.resize(new_size);
  ASSIGN_OR_RETURN(const Digest digest, Store(std::move(bytes), emit));
  return ContentId{digest, new_size, ContentKind::kFlat};
}

// Gives chunk `index` the bytes that `id` has there, cut or extended to the chunk's new length.
Status ResizeChunk(ObjectStore& objects, const ContentId& id, uint64_t index, uint64_t new_size,
                   ChunkTree& tree, const EmitObject& emit) {
  const uint64_t length = ChunkLength(new_size, index);
  if (id.kind == ContentKind::kTree && length == ChunkLength(id.size, index)) return {};
  ASSIGN_OR_RETURN(Bytes bytes, ReadContent(objects, id, index * kChunkSize, length));
  bytes.resize(length);
  if (IsAllZeros(bytes)) return tree.SetChunk(index, std::nullopt);
  ASSIGN_OR_RETURN(const Digest digest, Store(std::move(bytes), emit));
  return tree.SetChunk(index, digest);
}

}  // namespace

bool IsAllZeros(ByteView bytes) {
  return bytes.empty() || (bytes.front() == '\0' &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

Result<Bytes> ReadContent(ObjectStore& objects, const ContentId& id, uint64_t offset, size_t size) {
  TRY(CheckKind(id));
  if (offset >= id.size || size == 0) return Bytes();
  const uint64_t end = offset + std::min<uint64_t>(size, id.size - offset);
  if (id.kind == ContentKind::kFlat) {
    ASSIGN_OR_RETURN(const Buffer bytes, GetOfLength(objects, id.digest, id.size));
    return bytes->substr(offset, end - offset);
  }
  Bytes out;
  out.reserve(end - offset);
  TRY(AppendChunks(objects, id, offset, end, out));
  return out;
}

Result<ContentId> ResizeContent(ObjectStore& objects, const ContentId& id, uint64_t new_size,
                                const EmitObject& emit) {
  TRY(CheckKind(id));
  if (new_size == id.size) return id;
  if (new_size <= kChunkSize) return ResizeToFlat(objects, id, new_size, emit);
  const bool was_tree = id.kind == ContentKind::kTree;
  ChunkTree tree = was_tree ? ChunkTree(objects, id) : ChunkTree(objects);
  TRY(tree.Truncate(ChunkCount(new_size)));
  if (const uint64_t kept = std::min(id.size, new_size); kept > 0) {
    TRY(ResizeChunk(objects, id, (kept - 1) / kChunkSize, new_size, tree, emit));
  }
  return tree.Seal(new_size, emit);
}

}  // namespace memoirfs::cas
