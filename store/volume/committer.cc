// What makes things durable: the barrier, the chains' segments, checkpoints of the index, sealing
// of full journals. Once a second, and when someone asks. Two threads: the committer, whose barrier
// is never late, and the housekeeper, for what can take long.
//
// Order: journal synced -> segments appended (durable records only) -> index written. A checkpoint
// syncs segments and index as well; replay starts where it stands. Intents that are still open are
// appended again behind it, for replay must find them.

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/volume/record_frames.h"
#include "store/volume/spare.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

// More in the overlay than this is written out before its time: memory is bounded.
constexpr size_t kOverlayBytes = 16U << 20;

}  // namespace

Status Volume::Impl::Barrier() { return journal_->SyncTo(journal_->end()); }

Status Volume::Impl::Sync() { return Barrier(); }

Result<chain::SegmentWriter*> Volume::Impl::SegmentOf(StreamId stream, Seq next) {
  auto found = segments_.find(stream);
  if (found == segments_.end()) {
    uint64_t cut_bytes = 0;
    ASSIGN_OR_RETURN(auto writer,
                     chain::SegmentWriter::Open(io_, stream, options_.segments, &cut_bytes, next));
    if (cut_bytes != 0) {
      Log(LogLevel::kWarn, "volume.segment-cut",
          std::to_string(cut_bytes) +
              " bytes that were not known to be durable are written anew at " + "the end of " +
              chain::ChainDirectory(stream));
    }
    found = segments_.emplace(stream, std::move(writer)).first;
  }
  return found->second.get();
}

Status Volume::Impl::WriteSegments(journal::Lsn durable) {
  for (;;) {
    QueuedLine line;
    {
      const MutexLock lock(queue_mutex_);
      if (lines_.empty() || lines_.front().end > durable) return {};
      line = lines_.front();
    }
    Status status = WriteLine(line.stream, line.record);
    // A shortage leaves the segment as it was: the line waits, the next try may write it.
    if (IsShortage(status.code())) return status;
    if (!status.ok()) TRY(BreakSegment(line.stream, status));
    const MutexLock lock(queue_mutex_);
    lines_.pop_front();
  }
}

Status Volume::Impl::WriteLine(StreamId stream, const chain::SealedRecord& record) {
  if (broken_segments_.count(stream) != 0) return {};
  ASSIGN_OR_RETURN(chain::SegmentWriter* const segment, SegmentOf(stream, record.seq));
  if (segment->head().seq.value + 1 < record.seq.value) {
    TRY(FillSegment(stream, *segment, Seq(record.seq.value - 1)));
  }
  // After recovery the segment may have it already.
  return record.seq > segment->head().seq ? segment->Append(record) : Status();
}

// One chain file that cannot be continued must not hold up the others: the stream becomes
// read-only. Its records stay in the journal and the packs, from which the next opening fills it:
// without the marker it would not know, for checkpoints go on.
Status Volume::Impl::BreakSegment(StreamId stream_id, const Status& why) {
  TRY(WriteFileAtomically(io_, kRebuildMarker, kTryAgain));
  const std::string reason = chain::ChainDirectory(stream_id) +
                             " cannot be continued: " + why.ToString() +
                             ". Check it with 'memoirfs verify'";
  Log(LogLevel::kError, "volume.segment", reason);
  CloseStream(stream_id, reason);
  return {};
}

void Volume::Impl::CloseStream(StreamId stream_id, const std::string& why) {
  broken_segments_.insert(stream_id);
  const auto stream = FindStream(stream_id);
  if (!stream.ok()) return;
  const MutexLock lock((*stream)->mutex);
  (*stream)->read_only_reason = why;
}

// A segment that was cut short is filled from packs and journals, which have every record.
Status Volume::Impl::FillSegment(StreamId stream, chain::SegmentWriter& segment, Seq last) {
  const Seq first(segment.head().seq.value + 1);
  ASSIGN_OR_RETURN(const auto frames, FindRecordFrames(io_, stream, first, last));
  for (Seq seq = first; seq <= last; ++seq.value) {
    const auto frame = frames.find(seq);
    if (frame == frames.end()) {
      return Status(Code::kNotFound,
                    "neither pack nor journal has record " + std::to_string(seq.value));
    }
    ASSIGN_OR_RETURN(const Bytes payload, packs_.ReadPayload(frame->second));
    const std::string line = payload.substr(sizeof(uint32_t) + sizeof(uint64_t));
    ASSIGN_OR_RETURN(const chain::ParsedRecord record, chain::ParseRecord(line));
    TRY(segment.Append(chain::SealedRecord{seq, record.ts, record.hash, line}));
  }
  return {};
}

// After a failed sync no checkpoint is made until the store is opened anew: then the lines that may
// be lost are still replayed, and written again.
Status Volume::Impl::SyncSegments() {
  for (const auto& [stream, segment] : segments_) TRY(segment->Sync());
  return {};
}

uint64_t Volume::Impl::IndexGeneration() const {
  const Digest digest = Sha256::Of(format_.store_id);
  return Decoder(digest.View()).U64();
}

Status Volume::Impl::ReemitIntents() {
  constexpr auto kReserve = journal::AppendClass::kReserve;
  for (Stream* const stream : Streams()) {
    const MutexLock lock(stream->mutex);
    if (!stream->read_only_reason.empty()) continue;  // replay stops before them in any case
    for (const auto& [ino, intent] : stream->creates) TRY(AppendIntent(*stream, intent, kReserve));
    for (const auto& [ino, intent] : stream->truncations)
      TRY(AppendIntent(*stream, intent, kReserve));
  }
  return {};
}

// What is created or truncated after `replay_from` was read lies behind it by itself; what was
// before is found under its stream's mutex and appended again.
Status Volume::Impl::CheckpointLocked() {
  const journal::Lsn replay_from = journal_->end();
  TRY(ReemitIntents());
  TRY(Barrier());
  const journal::Lsn durable = journal_->durable();
  TRY(WriteSegments(durable));
  TRY(SyncSegments());
  const meta::CheckpointRow row{replay_from, IndexGeneration()};
  TRY(index_->FlushAndSync(durable, meta::CheckpointKey(), row.Encode()));
  Encoder payload;
  payload.U8(0).U64(replay_from.journal).U64(replay_from.offset).U64(row.generation);
  const journal::NewFrame frame{journal::FrameType::kCheckpoint, payload.Take(), {}};
  return status_internal::AsStatus(journal_->Append({&frame, 1}, journal::AppendClass::kReserve));
}

Status Volume::Impl::Checkpoint() {
  const MutexLock lock(checkpoint_mutex_);
  KeepSpare(io_);
  return CheckpointLocked();
}

Status Volume::Impl::SealFullJournals() {
  if (journal_->FullJournals().empty()) return {};
  TRY(CheckpointLocked());
  // The checkpoint's own frame, so that whatever full files end with is behind a barrier.
  TRY(Barrier());
  while (!journal_->FullJournals().empty()) {
    const journal::PackId pack{journal_->FullJournals().front().journal, false};
    TRY(journal_->SealOldest());
    packs_.Invalidate(pack);
  }
  return {};
}

bool Volume::Impl::IsSettled() const {
  if (!journal_->settled() || !journal_->FullJournals().empty()) return false;
  if (index_->has_unwritten()) return false;
  const MutexLock lock(queue_mutex_);
  return lines_.empty();
}

// Durable rows and lines to where they belong.
Status Volume::Impl::WriteOut() {
  const journal::Lsn durable = journal_->durable();
  TRY(WriteSegments(durable));
  return index_->Flush(durable);
}

// Files: the next one made, full ones sealed.
Status Volume::Impl::KeepHouse() {
  KeepSpare(io_);
  Status prepared = journal_->PrepareNext();
  // Without room for a next file, what is left of this one still serves.
  if (!prepared.ok() && !IsFull(prepared.code())) return prepared;
  return SealFullJournals();
}

Status Volume::Impl::WriteOutAll() {
  RecordIncidents();
  TRY(Barrier());
  const MutexLock lock(checkpoint_mutex_);
  return WriteOut();
}

Status Volume::Impl::RunCommitterOnce() {
  RecordIncidents();
  if (IsSettled()) return {};  // an idle store does no I/O
  TRY(WriteOutAll());
  const MutexLock lock(checkpoint_mutex_);
  return KeepHouse();
}

// The barrier of each second waits for nobody. What can take long has the housekeeper.
Status Volume::Impl::CommitInTime() {
  if (IsSettled()) return {};
  TRY(Barrier());
  // A checkpoint that is under way writes out as well.
  if (!checkpoint_mutex_.try_lock()) return {};
  Status written = WriteOut();
  checkpoint_mutex_.unlock();
  return written;
}

bool Volume::Impl::NeedsHousekeeper() const {
  if (journal_->wants_next() || !journal_->FullJournals().empty()) return true;
  const MutexLock lock(queue_mutex_);
  return !incidents_.empty();
}

void Volume::Impl::WakeHousekeeper() {
  const MutexLock lock(committer_mutex_);
  housekeeping_ = true;
  housekeeper_wake_.NotifyOne();
}

void Volume::Impl::StartCommitter() {
  if (!options_.background) return;
  committer_ = std::thread([this] { CommitterLoop(); });
  pthread_setname_np(committer_.native_handle(), "committer");
  housekeeper_ = std::thread([this] { HousekeeperLoop(); });
  pthread_setname_np(housekeeper_.native_handle(), "housekeeper");
}

namespace {

// Of a loop's failures, the first one of each row of them is told.
class FirstFailure {
 public:
  void Tell(std::string_view site, const Status& status) {
    if (!status.ok() && !told_) Log(LogLevel::kError, site, status.ToString());
    told_ = !status.ok();
  }

 private:
  bool told_ = false;
};

}  // namespace

void Volume::Impl::CommitterLoop() {
  const std::chrono::milliseconds interval(options_.commit_interval_ms);
  FirstFailure failure;
  for (;;) {
    {
      const MutexLock lock(committer_mutex_);
      if (!stopping_) committer_wake_.WaitFor(committer_mutex_, interval);
      if (stopping_) return;
    }
    failure.Tell("volume.committer", CommitInTime());
    if (NeedsHousekeeper()) WakeHousekeeper();
  }
}

// Who appends must not wait for 64 MiB of zeros, nor the barrier of each second for them or for a
// sealing.
void Volume::Impl::HousekeeperLoop() {
  FirstFailure failure;
  for (;;) {
    {
      const MutexLock lock(committer_mutex_);
      while (!stopping_ && !housekeeping_) housekeeper_wake_.Wait(committer_mutex_);
      if (stopping_) return;
      housekeeping_ = false;
    }
    (void)journal_->PrepareNext();  // first: somebody may wait for it. A failure is met again below
    RecordIncidents();
    const MutexLock lock(checkpoint_mutex_);
    failure.Tell("volume.housekeeper", KeepHouse());
  }
}

// Called by those who append, with their locks held: it only wakes, so that a burst is not kept in
// memory until the next second, and the next journal file is there when it is needed.
void Volume::Impl::WakeAfterAppend() {
  if (!options_.background) return;
  if (index_->overlay_bytes() >= kOverlayBytes) committer_wake_.NotifyOne();
  if (journal_->wants_next()) WakeHousekeeper();
}

void Volume::Impl::Close() {
  {
    const MutexLock lock(committer_mutex_);
    stopping_ = true;
  }
  committer_wake_.NotifyAll();
  housekeeper_wake_.NotifyAll();
  if (committer_.joinable()) committer_.join();
  if (housekeeper_.joinable()) housekeeper_.join();
  // Behind a purge that was decided, the next opening starts from the packs in any case.
  if (!opened_ || journal_->failed() || purged_.load() != StreamId()) return;
  if (index_->damaged()) {
    Log(LogLevel::kError, "volume.index-damaged",
        "the index was found damaged while it was used; the next opening rebuilds it");
    if (WriteFileAtomically(io_, kRebuildMarker, {}).ok()) {
      (void)Barrier();  // a failure was told by the journal
      return;
    }
  }
  RecordIncidents();
  Status status = StopCleanly();
  if (IsFull(status.code())) {
    GiveSpareBack(io_);
    status = StopCleanly();
  }
  if (!status.ok()) Log(LogLevel::kError, "volume.close", status.ToString());
}

// The last frame says that nothing is behind it: the next opening goes on from there.
Status Volume::Impl::StopCleanly() {
  const MutexLock lock(checkpoint_mutex_);
  KeepSpare(io_);
  TRY(CheckpointLocked());
  TRY(SealFullJournals());
  Encoder payload;
  payload.U8(1).U64(0).U64(0).U64(IndexGeneration());
  const journal::NewFrame frame{journal::FrameType::kCheckpoint, payload.Take(), {}};
  ASSIGN_OR_RETURN(const auto appended,
                   journal_->Append({&frame, 1}, journal::AppendClass::kReserve));
  TRY(journal_->SyncTo(appended.end));
  return journal_->NoteCleanStop();
}

}  // namespace memoirfs::volume
