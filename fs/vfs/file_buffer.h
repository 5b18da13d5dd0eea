#pragma once

// The content of one file with what is not committed of it.
//
// A commit works on a snapshot, so that writers go on: they copy a chunk that a snapshot shares.
// Each change carries a generation; when the commit is done, what did not change since is dropped.
// When many bytes are dirty, whole chunks are stored as objects ahead of the commit (spilled), so
// that the memory of one file is bounded.
//
// Not thread-safe: the inode's content lock guards it (shared for const methods). A change that
// fails leaves the content as it was.

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/vfs/buffer_content.h"
#include "fs/vfs/dirty_budget.h"
#include "store/volume/volume.h"

namespace memoirfs::vfs {

using ChunkSessions = std::vector<std::unique_ptr<volume::Volume::ChunkSession>>;

struct BufferSnapshot {
  BufferContent content;
  uint64_t generation = 0;
  ChunkSessions sessions;  // unfinished, with spilled chunks of it
};

class FileBuffer {
 public:
  static constexpr uint64_t kSpillAbove = 8ULL << 20;  // dirty bytes

  FileBuffer(volume::Volume& volume, DirtyBudget& budget, const ContentId& base);
  ~FileBuffer();
  FileBuffer(const FileBuffer&) = delete;
  FileBuffer& operator=(const FileBuffer&) = delete;

  const BufferContent& content() const { return content_; }
  uint64_t size() const { return content_.size; }
  bool dirty() const { return content_.dirty(); }
  uint64_t dirty_bytes() const { return dirty_bytes_; }

  // Fewer bytes at the end. kCorrupt when a chunk of the range does not verify.
  Result<Bytes> Read(uint64_t offset, uint64_t size) const;
  Status Write(uint64_t offset, ByteView data);
  Status Resize(uint64_t size);
  // Zeros within the file; whole chunks become holes.
  Status Zero(uint64_t offset, uint64_t size);
  Result<uint64_t> NextData(uint64_t offset) const;
  Result<uint64_t> NextHole(uint64_t offset) const;

  // Stores whole dirty chunks as objects and frees their memory, but not that of `keep`.
  Status Spill(uint64_t keep = BufferContent::kNoOffset);

  BufferSnapshot TakeSnapshot();
  // The snapshot was committed as `committed`; or it was not, and nothing is lost.
  void Rebase(const BufferSnapshot& snapshot, const ContentId& committed);
  void PutBack(BufferSnapshot snapshot);

 private:
  // What the first and the last chunk of a range hold besides it.
  struct Edges {
    Bytes first, last;
  };
  Result<Bytes> BytesBeforeWrite(uint64_t index, uint64_t from, uint64_t to) const;
  Result<Edges> EdgesOf(uint64_t offset, uint64_t size) const;
  void Overwrite(uint64_t offset, ByteView data, Edges edges);
  void Put(uint64_t index, Bytes bytes);
  Bytes& Editable(uint64_t index);
  void SetSize(Bytes& bytes, uint64_t size);
  void EraseFrom(uint64_t index);
  void Release(const ChangedChunk& chunk);
  void PunchChunks(uint64_t begin, uint64_t end, const std::vector<uint64_t>& of_base);
  Status StoreChunk(ChangedChunk& chunk);

  volume::Volume& volume_;
  DirtyBudget& budget_;
  BufferContent content_;
  uint64_t smallest_size_;  // since the last snapshot
  uint64_t generation_ = 0;
  uint64_t dirty_bytes_ = 0;
  bool committing_ = false;  // a snapshot is out
  ChunkSessions sessions_;
};

}  // namespace memoirfs::vfs
