#include "fs/vfs/file_buffer.h"

#include <algorithm>
#include <utility>

namespace memoirfs::vfs {

using cas::kChunkSize;
using Kind = ChangedChunk::Kind;

FileBuffer::FileBuffer(volume::Volume& volume, DirtyBudget& budget, const ContentId& base)
    : volume_(volume), budget_(budget), smallest_size_(base.size) {
  content_.base = base;
  content_.base_visible = base.size;
  content_.size = base.size;
}

FileBuffer::~FileBuffer() { budget_.Subtract(dirty_bytes_); }

Result<Bytes> FileBuffer::Read(uint64_t offset, uint64_t size) const {
  return content_.Read(volume_.objects(), offset, size);
}

Result<uint64_t> FileBuffer::NextData(uint64_t offset) const {
  return content_.NextData(volume_.objects(), offset);
}

Result<uint64_t> FileBuffer::NextHole(uint64_t offset) const {
  return content_.NextHole(volume_.objects(), offset);
}

// What chunk `index` must hold before `from` to `to` of it are overwritten; empty when all that it
// holds is overwritten, or when it is in memory.
Result<Bytes> FileBuffer::BytesBeforeWrite(uint64_t index, uint64_t from, uint64_t to) const {
  const auto changed = content_.chunks.find(index);
  if (changed != content_.chunks.end() && changed->second.kind == Kind::kBytes) return Bytes();
  const uint64_t length = content_.ChunkLength(index);
  if (from == 0 && to >= length) return Bytes();
  return content_.ReadChunk(volume_.objects(), index, 0, length);
}

// Only the first and the last chunk can be overwritten in part.
Result<FileBuffer::Edges> FileBuffer::EdgesOf(uint64_t offset, uint64_t size) const {
  const uint64_t end = offset + size;
  const uint64_t first = offset / kChunkSize;
  const uint64_t last = (end - 1) / kChunkSize;
  const uint64_t to = std::min(kChunkSize, end - first * kChunkSize);
  Edges edges;
  ASSIGN_OR_RETURN(edges.first, BytesBeforeWrite(first, offset % kChunkSize, to));
  if (last != first) {
    ASSIGN_OR_RETURN(edges.last, BytesBeforeWrite(last, 0, end - last * kChunkSize));
  }
  return edges;
}

Status FileBuffer::Write(uint64_t offset, ByteView data) {
  if (data.empty()) return {};
  if (dirty_bytes_ + data.size() > kSpillAbove) TRY(Spill(offset / kChunkSize));
  ASSIGN_OR_RETURN(Edges edges, EdgesOf(offset, data.size()));
  Overwrite(offset, data, std::move(edges));
  return {};
}

// Cannot fail: what can was done for `edges`, since when no chunk was spilled.
void FileBuffer::Overwrite(uint64_t offset, ByteView data, Edges edges) {
  const uint64_t end = offset + data.size();
  const uint64_t first = offset / kChunkSize;
  const uint64_t last = (end - 1) / kChunkSize;
  ++generation_;
  for (uint64_t index = first; index <= last; ++index) {
    const uint64_t from = index == first ? offset % kChunkSize : 0;
    const uint64_t to = std::min(kChunkSize, end - index * kChunkSize);
    const auto changed = content_.chunks.find(index);
    if (changed == content_.chunks.end() || changed->second.kind != Kind::kBytes) {
      Put(index, index == first  ? std::move(edges.first)
                 : index == last ? std::move(edges.last)
                                 : Bytes());
    }
    Bytes& bytes = Editable(index);
    if (bytes.size() < to) SetSize(bytes, to);
    bytes.replace(from, to - from, data.substr(index * kChunkSize + from - offset, to - from));
  }
  content_.first_change = std::min(content_.first_change, offset);
  content_.size = std::max(content_.size, end);
}

Status FileBuffer::Resize(uint64_t size) {
  const uint64_t boundary = size / kChunkSize;
  const uint64_t within = size % kChunkSize;
  const auto changed = content_.chunks.find(boundary);
  const bool cuts = size < content_.size && within != 0 && changed != content_.chunks.end();
  if (cuts && changed->second.kind == Kind::kStored) {
    ASSIGN_OR_RETURN(Bytes bytes, content_.ReadChunk(volume_.objects(), boundary, 0, within));
    Put(boundary, std::move(bytes));
  }
  ++generation_;
  if (cuts && changed->second.kind == Kind::kBytes) {
    Bytes& bytes = Editable(boundary);
    if (bytes.size() > within) SetSize(bytes, within);
  }
  if (size < content_.size) EraseFrom(boundary + (within != 0));
  content_.first_change = std::min({content_.first_change, size, content_.size});
  content_.base_visible = std::min(content_.base_visible, size);
  smallest_size_ = std::min(smallest_size_, size);
  content_.size = size;
  return {};
}

Status FileBuffer::Zero(uint64_t offset, uint64_t size) {
  if (offset >= content_.size || size == 0) return {};
  const uint64_t end = offset + std::min(size, content_.size - offset);
  const bool to_end = end == content_.size;
  const uint64_t first_whole = (offset + kChunkSize - 1) / kChunkSize;
  const uint64_t end_whole = to_end ? cas::ChunkCount(content_.size) : end / kChunkSize;
  if (first_whole >= end_whole) return Write(offset, Bytes(end - offset, '\0'));

  std::vector<uint64_t> of_base;
  ASSIGN_OR_RETURN(auto next, content_.NextBaseChunk(volume_.objects(), first_whole, false));
  while (next && *next < end_whole) {
    of_base.push_back(*next);
    ASSIGN_OR_RETURN(next, content_.NextBaseChunk(volume_.objects(), *next + 1, false));
  }
  const Bytes before(first_whole * kChunkSize - offset, '\0');
  const uint64_t whole_end = std::min(end, end_whole * kChunkSize);
  const Bytes behind(end - whole_end, '\0');
  // All that can fail comes before all that changes.
  if (dirty_bytes_ + before.size() + behind.size() > kSpillAbove) TRY(Spill());
  Edges edges_before, edges_behind;
  if (!before.empty()) {
    ASSIGN_OR_RETURN(edges_before, EdgesOf(offset, before.size()));
  }
  if (!behind.empty()) {
    ASSIGN_OR_RETURN(edges_behind, EdgesOf(whole_end, behind.size()));
  }
  if (!before.empty()) Overwrite(offset, before, std::move(edges_before));
  if (!behind.empty()) Overwrite(whole_end, behind, std::move(edges_behind));
  PunchChunks(first_whole, end_whole, of_base);
  content_.first_change = std::min(content_.first_change, offset);
  return {};
}

void FileBuffer::PunchChunks(uint64_t begin, uint64_t end, const std::vector<uint64_t>& of_base) {
  ++generation_;
  for (const uint64_t index : of_base) content_.chunks.try_emplace(index);
  for (auto it = content_.chunks.lower_bound(begin); it != content_.chunks.end(); ++it) {
    if (it->first >= end) break;
    Release(it->second);
    it->second = ChangedChunk{Kind::kHole, nullptr, {}, generation_, false};
  }
}

// Makes chunk `index` one of bytes in memory.
void FileBuffer::Put(uint64_t index, Bytes bytes) {
  ChangedChunk& chunk = content_.chunks[index];
  Release(chunk);
  dirty_bytes_ += bytes.size();
  budget_.Add(bytes.size());
  chunk =
      ChangedChunk{Kind::kBytes, std::make_shared<Bytes>(std::move(bytes)), {}, generation_, false};
}

// The bytes of a chunk in memory, the buffer's own from now on.
Bytes& FileBuffer::Editable(uint64_t index) {
  ChangedChunk& chunk = content_.chunks[index];
  if (chunk.shared) chunk.bytes = std::make_shared<Bytes>(*chunk.bytes);
  chunk.shared = false;
  chunk.generation = generation_;
  return *chunk.bytes;
}

void FileBuffer::SetSize(Bytes& bytes, uint64_t size) {
  dirty_bytes_ += size - bytes.size();  // also right where it wraps
  if (size > bytes.size()) budget_.Add(size - bytes.size());
  if (size < bytes.size()) budget_.Subtract(bytes.size() - size);
  bytes.resize(size, '\0');
}

void FileBuffer::Release(const ChangedChunk& chunk) {
  if (chunk.kind != Kind::kBytes) return;
  dirty_bytes_ -= chunk.bytes->size();
  budget_.Subtract(chunk.bytes->size());
}

void FileBuffer::EraseFrom(uint64_t index) {
  const auto from = content_.chunks.lower_bound(index);
  for (auto it = from; it != content_.chunks.end(); ++it) Release(it->second);
  content_.chunks.erase(from, content_.chunks.end());
}

Status FileBuffer::Spill(uint64_t keep) {
  for (auto& [index, chunk] : content_.chunks) {
    const bool whole = content_.ChunkLength(index) == kChunkSize;
    const bool in_commit = committing_ && chunk.shared;  // it will be free soon anyway
    if (chunk.kind != Kind::kBytes || !whole || in_commit || index == keep) continue;
    TRY(StoreChunk(chunk));
  }
  return {};
}

Status FileBuffer::StoreChunk(ChangedChunk& chunk) {
  ChangedChunk stored{Kind::kHole, nullptr, {}, chunk.generation, false};
  if (!cas::IsAllZeros(*chunk.bytes)) {
    std::shared_ptr<Bytes> bytes = chunk.bytes;
    if (bytes->size() < kChunkSize) {
      bytes = std::make_shared<Bytes>(*bytes);
      bytes->resize(kChunkSize, '\0');
    }
    if (sessions_.empty()) {
      ASSIGN_OR_RETURN(auto session, volume_.StartChunkSession());
      sessions_.push_back(std::move(session));
    }
    stored.kind = Kind::kStored;
    stored.digest = Sha256::Of(*bytes);
    TRY(sessions_.back()->Store(stored.digest, bytes));
  }
  Release(chunk);
  chunk = std::move(stored);
  return {};
}

BufferSnapshot FileBuffer::TakeSnapshot() {
  for (auto& [index, chunk] : content_.chunks) chunk.shared = true;
  BufferSnapshot snapshot{content_, generation_, std::move(sessions_)};
  sessions_.clear();
  committing_ = true;
  smallest_size_ = content_.size;
  content_.first_change = BufferContent::kNoOffset;
  return snapshot;
}

void FileBuffer::Rebase(const BufferSnapshot& snapshot, const ContentId& committed) {
  for (auto it = content_.chunks.begin(); it != content_.chunks.end();) {
    if (it->second.generation > snapshot.generation) {
      ++it;
      continue;
    }
    Release(it->second);
    it = content_.chunks.erase(it);
  }
  committing_ = false;
  content_.base = committed;
  content_.base_visible = smallest_size_;
}

void FileBuffer::PutBack(BufferSnapshot snapshot) {
  committing_ = false;
  content_.first_change = std::min(content_.first_change, snapshot.content.first_change);
  for (auto& session : sessions_) snapshot.sessions.push_back(std::move(session));
  sessions_ = std::move(snapshot.sessions);
}

}  // namespace memoirfs::vfs
