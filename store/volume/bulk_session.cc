#include "store/volume/bulk_session.h"

#include <utility>

#include "store/volume/spare.h"

namespace memoirfs::volume {

BulkSession::~BulkSession() {
  if (writer_) volume_.packs_.Invalidate(journal::PackId{number_, true});
  Unstage();
}

Status BulkSession::Store(const Digest& digest, const Buffer& bytes) {
  if (chunks_.count(digest) != 0) return {};
  ASSIGN_OR_RETURN(const bool stored, volume_.IsStored(digest));
  if (stored) return {};
  TRY(CheckRoom(volume_.io_, bytes->size()));
  TRY(Prepare());
  ASSIGN_OR_RETURN(const journal::Location where, writer_->Append(digest, *bytes));
  chunks_.emplace(digest, where);
  Stage(digest, where);
  return {};
}

Status BulkSession::Finish() {
  if (!writer_) return {};
  TRY(Prepare());
  TRY(writer_->Finish());
  writer_.reset();
  volume_.packs_.Invalidate(journal::PackId{number_, true});
  meta::Batch batch;
  for (const auto& [digest, where] : chunks_) {
    batch.Put(meta::LocationKey(digest), meta::EncodeLocation(where));
  }
  batch.Put(meta::BulkKey(number_), {});
  {
    const MutexLock lock(volume_.commit_mutex_);
    volume_.NoteHealed(chunks_, batch);
    volume_.index_->Apply(std::move(batch), volume_.journal_->durable());
  }
  Unstage();
  return {};
}

Status BulkSession::Prepare() {
  if (writer_ && !writer_->failed()) return {};
  const uint64_t bytes = writer_ ? writer_->bytes_written() : 0;
  TRY(CheckRoom(volume_.io_, bytes));
  const uint64_t number = volume_.next_bulk_++;
  ASSIGN_OR_RETURN(auto writer, journal::CreateBulkPack(volume_.io_, number, volume_.epoch_));
  ASSIGN_OR_RETURN(Chunks copies, CopyChunks(*writer));
  for (const auto& [digest, where] : copies) Stage(digest, where);
  Unstage();
  if (writer_) volume_.packs_.Invalidate(journal::PackId{number_, true});
  number_ = number;
  writer_ = std::move(writer);
  chunks_ = std::move(copies);
  return {};
}

// What can be read and verifies is whole, whatever became of the file's sync.
Result<BulkSession::Chunks> BulkSession::CopyChunks(journal::BulkWriter& writer) {
  Chunks copies;
  for (const auto& chunk : chunks_) {
    ASSIGN_OR_RETURN(const Buffer bytes, volume_.objects_->Get(chunk.first));
    ASSIGN_OR_RETURN(const journal::Location where, writer.Append(chunk.first, *bytes));
    copies.emplace(chunk.first, where);
  }
  return copies;
}

void BulkSession::Stage(const Digest& digest, const journal::Location& where) {
  const MutexLock lock(volume_.queue_mutex_);
  volume_.staged_.emplace(digest, where);
}

// Another session may have staged the same chunk: only this one's entries go.
void BulkSession::Unstage() {
  const MutexLock lock(volume_.queue_mutex_);
  for (const auto& [digest, where] : chunks_) {
    const auto [first, last] = volume_.staged_.equal_range(digest);
    for (auto it = first; it != last; ++it) {
      if (it->second != where) continue;
      volume_.staged_.erase(it);
      break;
    }
  }
  chunks_.clear();
}

}  // namespace memoirfs::volume
