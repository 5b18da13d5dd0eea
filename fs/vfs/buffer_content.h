#pragma once

// What a file contains, as changed chunks over a committed base.
//
// A changed chunk is bytes in memory, or an object stored ahead of the commit, or a hole. What was
// not changed is read from the base, of which only the first base_visible bytes still count: what
// a truncation cut off never comes back. Bytes that nothing gives are zeros.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "store/base/bytes.h"
#include "store/base/digest.h"
#include "store/base/status.h"
#include "store/cas/chunk_tree.h"

namespace memoirfs::vfs {

struct ChangedChunk {
  enum class Kind : uint8_t { kBytes, kStored, kHole };
  Kind kind = Kind::kHole;
  std::shared_ptr<Bytes> bytes;  // kBytes: up to a chunk; zeros behind them
  Digest digest;                 // kStored: of the object, a whole chunk
  uint64_t generation = 0;       // of its last change
  bool shared = false;           // a snapshot or a cache has these bytes too: copy before a change
};

struct BufferContent {
  static constexpr uint64_t kNoOffset = ~uint64_t{0};

  ContentId base;
  uint64_t base_visible = 0;
  uint64_t size = 0;
  uint64_t first_change = kNoOffset;        // no byte before it differs from the base
  std::map<uint64_t, ChangedChunk> chunks;  // by index

  bool dirty() const;
  bool has_data() const;  // not holes alone
  uint64_t ChunkLength(uint64_t index) const { return cas::ChunkLength(size, index); }

  // Bytes `from` to `to` of one chunk, counted from its start; `to` is at most its length.
  Result<Bytes> ReadChunk(cas::ObjectStore& objects, uint64_t index, uint64_t from,
                          uint64_t to) const;
  // Fewer bytes at the end.
  Result<Bytes> Read(cas::ObjectStore& objects, uint64_t offset, uint64_t count) const;

  // The first chunk of the base, at or behind `from`, that is visible and (not) a hole.
  Result<std::optional<uint64_t>> NextBaseChunk(cas::ObjectStore& objects, uint64_t from,
                                                bool hole) const;
  // Where data, or a hole, begins at or behind `offset`. kNoDevice past the end, and where no data
  // follows; the end of the file counts as a hole.
  Result<uint64_t> NextData(cas::ObjectStore& objects, uint64_t offset) const;
  Result<uint64_t> NextHole(cas::ObjectStore& objects, uint64_t offset) const;
};

}  // namespace memoirfs::vfs
