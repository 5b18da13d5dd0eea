#include "fs/vfs/buffer_content.h"

#include <algorithm>

namespace memoirfs::vfs {
namespace {

using cas::kChunkSize;

Status PastTheEnd() { return Status(Code::kNoDevice, "no data there: past the end of the file"); }

}  // namespace

bool BufferContent::dirty() const {
  return !chunks.empty() || size != base.size || base_visible < base.size;
}

bool BufferContent::has_data() const {
  return base_visible > 0 || std::any_of(chunks.begin(), chunks.end(), [](const auto& chunk) {
           return chunk.second.kind != ChangedChunk::Kind::kHole;
         });
}

Result<Bytes> BufferContent::ReadChunk(cas::ObjectStore& objects, uint64_t index, uint64_t from,
                                       uint64_t to) const {
  Bytes out;
  const auto changed = chunks.find(index);
  if (changed == chunks.end()) {
    const uint64_t start = index * kChunkSize;
    const uint64_t visible = std::min(base_visible, start + to);
    if (start + from < visible) {
      ASSIGN_OR_RETURN(out, cas::ReadContent(objects, base, start + from, visible - start - from));
    }
  } else if (changed->second.kind == ChangedChunk::Kind::kBytes) {
    const Bytes& bytes = *changed->second.bytes;
    if (from < bytes.size()) out = bytes.substr(from, to - from);
  } else if (changed->second.kind == ChangedChunk::Kind::kStored) {
    ASSIGN_OR_RETURN(const Buffer object, objects.Get(changed->second.digest));
    if (from < object->size()) out = object->substr(from, to - from);
  }
  out.resize(to - from, '\0');
  return out;
}

Result<Bytes> BufferContent::Read(cas::ObjectStore& objects, uint64_t offset,
                                  uint64_t count) const {
  if (offset >= size) return Bytes();
  const uint64_t end = offset + std::min(count, size - offset);
  if (chunks.empty() && end <= base_visible) {
    return cas::ReadContent(objects, base, offset, end - offset);
  }
  Bytes out;
  out.reserve(end - offset);
  while (offset < end) {
    const uint64_t from = offset % kChunkSize;
    const uint64_t to = std::min(kChunkSize, from + (end - offset));
    ASSIGN_OR_RETURN(const Bytes piece, ReadChunk(objects, offset / kChunkSize, from, to));
    out += piece;
    offset += to - from;
  }
  return out;
}

Result<std::optional<uint64_t>> BufferContent::NextBaseChunk(cas::ObjectStore& objects,
                                                             uint64_t from, bool hole) const {
  const uint64_t limit = cas::ChunkCount(base_visible);
  if (from >= limit) return std::optional<uint64_t>();
  if (base.kind == ContentKind::kFlat) {
    return hole ? std::optional<uint64_t>() : std::optional<uint64_t>(from);
  }
  cas::ChunkTree tree(objects, base);
  return tree.NextChunk(from, limit, hole);
}

Result<uint64_t> BufferContent::NextData(cas::ObjectStore& objects, uint64_t offset) const {
  if (offset >= size) return PastTheEnd();
  const uint64_t first = offset / kChunkSize;
  auto changed = chunks.lower_bound(first);
  while (changed != chunks.end() && changed->second.kind == ChangedChunk::Kind::kHole) ++changed;
  const uint64_t changed_data = changed == chunks.end() ? kNoOffset : changed->first;

  ASSIGN_OR_RETURN(std::optional<uint64_t> base_data, NextBaseChunk(objects, first, false));
  while (base_data && *base_data < changed_data && chunks.count(*base_data) != 0) {
    ASSIGN_OR_RETURN(base_data, NextBaseChunk(objects, *base_data + 1, false));
  }
  const uint64_t chunk = std::min(changed_data, base_data.value_or(kNoOffset));
  if (chunk == kNoOffset || chunk * kChunkSize >= size) return PastTheEnd();
  return std::max(offset, chunk * kChunkSize);
}

Result<uint64_t> BufferContent::NextHole(cas::ObjectStore& objects, uint64_t offset) const {
  if (offset >= size) return PastTheEnd();
  const uint64_t base_limit = cas::ChunkCount(base_visible);
  uint64_t chunk = offset / kChunkSize;
  while (chunk < cas::ChunkCount(size)) {
    const auto changed = chunks.lower_bound(chunk);
    if (changed != chunks.end() && changed->first == chunk) {
      if (changed->second.kind == ChangedChunk::Kind::kHole) break;
      ++chunk;
      continue;
    }
    ASSIGN_OR_RETURN(const std::optional<uint64_t> hole, NextBaseChunk(objects, chunk, true));
    const uint64_t base_hole = hole.value_or(std::max(chunk, base_limit));
    const uint64_t next_changed = changed == chunks.end() ? kNoOffset : changed->first;
    chunk = std::min(base_hole, next_changed);
    if (base_hole < next_changed) break;
  }
  return std::min(size, std::max(offset, chunk * kChunkSize));
}

}  // namespace memoirfs::vfs
