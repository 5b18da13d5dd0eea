#pragma once

// Parts of one big file on their way into a bulk pack.

#include <memory>
#include <unordered_map>

#include "store/journal/pack.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {

// Its chunks are found through Volume::Impl::staged_ until the pack is finished. A failure is the
// answer of one call and not the end of the session: the next call goes on, where it must in a new
// file, into which the chunks of the one that failed are copied.
class BulkSession final : public Volume::ChunkSession {
 public:
  explicit BulkSession(Volume::Impl& volume) : volume_(volume) {}
  ~BulkSession() override;

  Status Store(const Digest& digest, const Buffer& bytes) override;
  Status Finish() override;

 private:
  using Chunks = std::unordered_map<Digest, journal::Location>;

  // A writer that can be written to.
  Status Prepare();
  Result<Chunks> CopyChunks(journal::BulkWriter& writer);
  void Stage(const Digest& digest, const journal::Location& where);
  void Unstage();

  Volume::Impl& volume_;
  uint64_t number_ = 0;
  std::unique_ptr<journal::BulkWriter> writer_;
  Chunks chunks_;
};

}  // namespace memoirfs::volume
