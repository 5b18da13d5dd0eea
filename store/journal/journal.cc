#include "store/journal/journal.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/journal/clean_stop.h"
#include "store/journal/footer.h"
#include "store/journal/frame_group.h"
#include "store/journal/journal_file.h"
#include "store/journal/paths.h"

// Two locks. The append lock covers the place of the next frame and what is known of durability; it
// is held for one write. The sync lock covers who leads the barrier; a leader holds neither while
// the disk works, so that appends go on and their callers become the next barrier's group.

namespace memoirfs::journal {
namespace {

struct FullFile {
  JournalFile file;
  uint64_t end = 0;  // of its frames

  Lsn end_lsn() const { return {file.number, end}; }
};

// The first frame of a journal that follows another one: where the other's frames end. Neither
// file need be synced when appends go on in the next, so that after a power cut an earlier journal
// may lack its end; this shows it.
NewFrame LinkTo(uint64_t previous_end) {
  return {FrameType::kMark, Encoder().U64(previous_end).Take(), {}};
}

constexpr uint64_t kLinkFootprint = AlignFrame(FrameHeader::kSize + sizeof(uint64_t));

// On a full disk a smaller file must do: with its reserve, files can be removed.
Result<JournalFile> MakeFirstFile(FileIo& io, const JournalOptions& options, uint64_t number) {
  for (uint64_t size = options.file_size;; size /= 2) {
    Result<JournalFile> made = MakeJournalFile(io, number, size);
    const bool full = IsFull(made.code());
    if (!full || size / 2 < options.min_file_size) return made;
  }
}

}  // namespace

class Journal::Impl {
 public:
  Impl(FileIo& io, JournalOptions options, JournalFile active, uint64_t end,
       std::optional<JournalFile> next, uint64_t epoch)
      : io_(io),
        options_(options),
        epoch_(epoch),
        active_(std::move(active)),
        next_(std::move(next)),
        end_(end),
        durable_{active_.number, end},
        frames_end_(durable_) {}

  Result<Appended> Append(std::span<const NewFrame> frames, AppendClass append_class);
  Status SyncTo(Lsn upto);
  Status PrepareNext();
  Status SealOldest();
  Status AppendMark() {
    MutexLock lock(append_mutex_);
    return WriteMark({FrameType::kMark, {}, {}});
  }

  Lsn end() const {
    MutexLock lock(append_mutex_);
    return EndLsn();
  }
  Lsn durable() const {
    MutexLock lock(append_mutex_);
    return durable_;
  }
  bool settled() const {
    MutexLock lock(append_mutex_);
    return durable_ >= frames_end_;
  }
  bool wants_next() const {
    MutexLock lock(append_mutex_);
    return WantsNext();
  }
  bool failed() const {
    MutexLock lock(append_mutex_);
    return !failure_.ok();
  }
  Status NoteCleanStop() const { return WriteCleanStop(io_, {end(), epoch_}); }
  std::vector<Lsn> FullJournals() const;
  uint64_t sync_count() const { return sync_count_; }

 private:
  struct Barrier {
    std::vector<std::shared_ptr<File>> files;  // oldest first
    Lsn target;                                // where appends stood when it began
  };

  Lsn EndLsn() const REQUIRES(append_mutex_) { return {active_.number, end_}; }
  bool WantsNext() const REQUIRES(append_mutex_) {
    return failure_.ok() && !next_.has_value() && !making_next_ && end_ >= active_.size / 2;
  }
  uint64_t Reserve() const REQUIRES(append_mutex_) {
    return std::min(options_.reserve, active_.size / 4);
  }
  Status Fail(const Status& status) REQUIRES(append_mutex_);
  Status Stopped() const REQUIRES(append_mutex_);

  Status MakeRoom(uint64_t size, AppendClass append_class) REQUIRES(append_mutex_);
  Status MakeNext() REQUIRES(append_mutex_);
  Status SwitchToNext() REQUIRES(append_mutex_);
  Result<Appended> Write(FrameGroup& group) REQUIRES(append_mutex_);
  Status WriteMark(const NewFrame& mark) REQUIRES(append_mutex_);

  std::optional<Status> Settled(Lsn upto) EXCLUDES(append_mutex_);
  std::optional<Status> JoinOrLead(Lsn upto) EXCLUDES(sync_mutex_);
  void StepDown() EXCLUDES(sync_mutex_);
  Status RunBarrier() EXCLUDES(append_mutex_);
  Barrier StartBarrier() EXCLUDES(append_mutex_);
  Status FinishBarrier(Lsn target) EXCLUDES(append_mutex_);

  Result<FullFile> OldestToSeal() EXCLUDES(append_mutex_);

  FileIo& io_;
  const JournalOptions options_;
  const uint64_t epoch_;
  std::atomic<uint64_t> sync_count_ = 0;

  Mutex sync_mutex_{LockRank::kJournalSync};
  CondVar barrier_done_;
  bool leading_ GUARDED_BY(sync_mutex_) = false;

  mutable Mutex append_mutex_{LockRank::kJournalAppend};
  CondVar next_made_;
  JournalFile active_ GUARDED_BY(append_mutex_);
  std::optional<JournalFile> next_ GUARDED_BY(append_mutex_);
  bool making_next_ GUARDED_BY(append_mutex_) = false;
  uint64_t end_ GUARDED_BY(append_mutex_);    // of the frames in active_
  Lsn durable_ GUARDED_BY(append_mutex_);     // everything before it is synced
  Lsn frames_end_ GUARDED_BY(append_mutex_);  // behind the last frame that is not a mark of ours
  std::deque<FullFile> full_ GUARDED_BY(append_mutex_);
  bool sealing_ GUARDED_BY(append_mutex_) = false;
  Status failure_ GUARDED_BY(append_mutex_);
};

// --- appending

Result<Appended> Journal::Impl::Append(std::span<const NewFrame> frames, AppendClass append_class) {
  ASSIGN_OR_RETURN(FrameGroup group, FrameGroup::Assemble(frames));
  if (group.size() + kLinkFootprint > options_.file_size) {
    return Status(Code::kInvalidArgument, "an append of " + std::to_string(group.size()) +
                                              " bytes does not fit in a journal file of " +
                                              std::to_string(options_.file_size) +
                                              ": use a bulk pack");
  }
  MutexLock lock(append_mutex_);
  TRY(MakeRoom(group.size(), append_class));
  ASSIGN_OR_RETURN(Appended appended, Write(group));
  frames_end_ = appended.end;
  return appended;
}

Result<Appended> Journal::Impl::Write(FrameGroup& group) {
  Appended appended;
  appended.locations = group.Place({PackId{active_.number}, epoch_, end_, durable_});
  const Status written = active_.file->WriteAt(end_, group.buffer());
  if (!written.ok()) return Fail(written);
  end_ += group.size();
  appended.end = EndLsn();
  return appended;
}

// Says in the journal itself how far it is durable. Never makes a file for it.
Status Journal::Impl::WriteMark(const NewFrame& mark) {
  ASSIGN_OR_RETURN(FrameGroup group, FrameGroup::Assemble({&mark, 1}));
  if (!failure_.ok() || end_ + group.size() > active_.size) return {};
  return Write(group).status();
}

// Returns with room for `size` bytes in active_. May release the append lock meanwhile.
Status Journal::Impl::MakeRoom(uint64_t size, AppendClass append_class) {
  for (;;) {
    if (!failure_.ok()) return Stopped();
    const uint64_t needed = end_ + size;
    const bool may_use_reserve = append_class == AppendClass::kReserve || next_.has_value();
    if (needed <= active_.size - (may_use_reserve ? 0 : Reserve())) return {};
    TRY(next_.has_value() ? SwitchToNext() : MakeNext());
  }
}

// Makes next_, or waits for the thread that does. The append lock is released meanwhile; only the
// maker sets next_, and without it active_ does not change.
Status Journal::Impl::MakeNext() {
  if (making_next_) {
    next_made_.Wait(append_mutex_);
    return {};
  }
  making_next_ = true;
  const uint64_t number = active_.number + 1;
  append_mutex_.unlock();
  Result<JournalFile> made = MakeJournalFile(io_, number, options_.file_size);
  append_mutex_.lock();
  making_next_ = false;
  next_made_.NotifyAll();
  if (made.ok()) {
    next_ = std::move(made).value();
    return {};
  }
  if (made.code() == Code::kQuota) return Status(Code::kNoSpace, made.status().message(), EDQUOT);
  return IsShortage(made.code()) ? made.status() : Fail(made.status());
}

Status Journal::Impl::SwitchToNext() {
  const uint64_t previous_end = end_;
  full_.push_back({std::move(active_), previous_end});
  active_ = std::move(*next_);
  next_.reset();
  end_ = 0;
  return WriteMark(LinkTo(previous_end));
}

Status Journal::Impl::PrepareNext() {
  MutexLock lock(append_mutex_);
  if (!failure_.ok()) return Stopped();
  return WantsNext() ? MakeNext() : Status();
}

// --- failure

Status Journal::Impl::Fail(const Status& status) {
  if (failure_.ok()) {
    failure_ = status;
    Log(LogLevel::kError, "journal.failed",
        JournalPath(active_.number) + ": " + status.message() +
            ": the store is read-only until it is opened anew");
  }
  return status;
}

Status Journal::Impl::Stopped() const {
  return Status(Code::kReadOnly,
                "the journal stopped after a failure, open the store anew: " + failure_.message());
}

// --- barriers

Status Journal::Impl::SyncTo(Lsn upto) {
  if (upto > end()) {
    return Status(Code::kInvalidArgument, "sync of frames that were not appended yet");
  }
  if (std::optional<Status> settled = JoinOrLead(upto)) return *settled;
  Status status = RunBarrier();
  StepDown();
  return status;
}

// What SyncTo(upto) answers when it need not wait. A mark alone needs no barrier: it would only be
// followed by the next mark.
std::optional<Status> Journal::Impl::Settled(Lsn upto) {
  MutexLock lock(append_mutex_);
  if (!failure_.ok()) return failure_;
  if (durable_ >= std::min(upto, frames_end_)) return Status();
  return std::nullopt;
}

// nullopt: the caller is the leader now.
std::optional<Status> Journal::Impl::JoinOrLead(Lsn upto) {
  MutexLock lock(sync_mutex_);
  for (;;) {
    if (std::optional<Status> settled = Settled(upto)) return settled;
    if (!leading_) {
      leading_ = true;
      return std::nullopt;
    }
    barrier_done_.Wait(sync_mutex_);
  }
}

void Journal::Impl::StepDown() {
  MutexLock lock(sync_mutex_);
  leading_ = false;
  barrier_done_.NotifyAll();
}

Status Journal::Impl::RunBarrier() {
  const Barrier barrier = StartBarrier();
  for (const std::shared_ptr<File>& file : barrier.files) {
    ++sync_count_;
    const Status synced = file->DataSync();
    if (synced.ok()) continue;
    MutexLock lock(append_mutex_);
    return Fail(synced);
  }
  return FinishBarrier(barrier.target);
}

Journal::Impl::Barrier Journal::Impl::StartBarrier() {
  MutexLock lock(append_mutex_);
  Barrier barrier;
  barrier.target = EndLsn();
  for (const FullFile& full : full_) {
    if (full.end_lsn() > durable_) barrier.files.push_back(full.file.file);
  }
  if (end_ > 0 && barrier.target > durable_) barrier.files.push_back(active_.file);
  return barrier;
}

Status Journal::Impl::FinishBarrier(Lsn target) {
  MutexLock lock(append_mutex_);
  durable_ = target;
  // Without followers no later frame would say that this barrier was passed.
  return EndLsn() == target ? WriteMark({FrameType::kMark, {}, {}}) : Status();
}

// --- sealing

std::vector<Lsn> Journal::Impl::FullJournals() const {
  MutexLock lock(append_mutex_);
  std::vector<Lsn> ends;
  for (const FullFile& full : full_) ends.push_back(full.end_lsn());
  return ends;
}

Result<FullFile> Journal::Impl::OldestToSeal() {
  MutexLock lock(append_mutex_);
  if (!failure_.ok()) return Stopped();
  if (sealing_) return Status(Code::kBusy, "a journal is being sealed already");
  if (full_.empty()) return Status(Code::kNotFound, "no journal is full");
  if (full_.front().end_lsn() > durable_) {
    return Status(Code::kInvalidArgument, JournalPath(full_.front().file.number) +
                                              " has frames that are not synced: sync it first");
  }
  sealing_ = true;
  return full_.front();
}

Status Journal::Impl::SealOldest() {
  ASSIGN_OR_RETURN(const FullFile full, OldestToSeal());
  const Status sealed = SealInPlace(io_, *full.file.file, full.file.number, full.end);
  MutexLock lock(append_mutex_);
  sealing_ = false;
  if (sealed.ok()) {
    full_.pop_front();
    return {};
  }
  return IsShortage(sealed.code()) ? sealed : Fail(sealed);
}

// --- the interface

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::Create(FileIo& io, JournalOptions options,
                                                 uint64_t number, uint64_t epoch) {
  if (io.Stat(JournalPath(number)).code() != Code::kNotFound) {
    return Status(Code::kExists, JournalPath(number) + " is there already");
  }
  TRY(ClearCleanStop(io));
  ASSIGN_OR_RETURN(JournalFile file, MakeFirstFile(io, options, number));
  return std::unique_ptr<Journal>(
      new Journal(std::make_unique<Impl>(io, options, std::move(file), 0, std::nullopt, epoch)));
}

Result<std::unique_ptr<Journal>> Journal::Continue(FileIo& io, JournalOptions options, Lsn at,
                                                   uint64_t epoch) {
  ASSIGN_OR_RETURN(JournalFile file, OpenJournalFile(io, at.journal));
  if (at.offset > file.size || at.offset != AlignFrame(at.offset)) {
    return Status(Code::kInvalidArgument, "no frame can follow at " + std::to_string(at.offset) +
                                              " of " + JournalPath(at.journal));
  }
  ASSIGN_OR_RETURN(std::optional<JournalFile> next,
                   AdoptPreparedFile(io, at.journal + 1, options.file_size));
  TRY(ClearCleanStop(io));
  std::unique_ptr<Journal> journal(new Journal(
      std::make_unique<Impl>(io, options, std::move(file), at.offset, std::move(next), epoch)));
  TRY(journal->impl_->AppendMark());
  return journal;
}

Result<Appended> Journal::Append(std::span<const NewFrame> frames, AppendClass append_class) {
  return impl_->Append(frames, append_class);
}
Status Journal::SyncTo(Lsn upto) { return impl_->SyncTo(upto); }
Status Journal::PrepareNext() { return impl_->PrepareNext(); }
Lsn Journal::end() const { return impl_->end(); }
Lsn Journal::durable() const { return impl_->durable(); }
bool Journal::settled() const { return impl_->settled(); }
bool Journal::wants_next() const { return impl_->wants_next(); }
bool Journal::failed() const { return impl_->failed(); }
Status Journal::NoteCleanStop() { return impl_->NoteCleanStop(); }
std::vector<Lsn> Journal::FullJournals() const { return impl_->FullJournals(); }
Status Journal::SealOldest() { return impl_->SealOldest(); }
uint64_t Journal::sync_count() const { return impl_->sync_count(); }

}  // namespace memoirfs::journal
