// One commit: the objects a change needs and its record, in one write to the journal, then in the
// index, in the same order for all streams.

#include <sys/utsname.h>

#include <bit>

#include "store/base/coding.h"
#include "store/base/file_name.h"
#include "store/base/json.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

using journal::FrameType;
using journal::NewFrame;

NewFrame RecordFrame(StreamId stream, const chain::SealedRecord& record) {
  Encoder head;
  head.U32(stream.value).U64(record.seq.value);
  return NewFrame{FrameType::kRecord, head.Take(), record.line};
}

std::string HostName() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "";
}

}  // namespace

Status Volume::Impl::CheckWritable(const Stream& stream) {
  // Recovery writes in any case: what was acknowledged before must be shown.
  if (options_.read_only && opened_) {
    return Status(Code::kReadOnly, "the store is open read-only");
  }
  if (journal_->failed()) {
    return Status(Code::kReadOnly,
                  "an earlier write to the journal failed: the store is "
                  "read-only until it is mounted anew");
  }
  if (!stream.read_only_reason.empty()) return Status(Code::kReadOnly, stream.read_only_reason);
  // Changes wait in memory for the index: not without bound.
  return index_->overlay_bytes() > options_.max_overlay_bytes ? RelieveIndex() : Status();
}

// The committer is late, or cannot write: who changes something waits for it here.
Status Volume::Impl::RelieveIndex() {
  TRY(Barrier());
  return index_->Flush(journal_->durable()).WithContext("the index cannot be written");
}

// Whether only the suffix need be written. The suffixes behind one whole blob add up to at most its
// size (a whole one is due when the size passes a power of two), and are no more than a few
// thousand.
Result<bool> Volume::Impl::MayExtend(const NewObject& object) const {
  if (!object.base || object.suffix_offset == 0) return false;
  const uint64_t size = object.bytes->size();
  constexpr uint64_t kMaxSuffixes = 4096;
  if ((size - object.suffix_offset) * kMaxSuffixes < size) return false;
  if (std::bit_width(size) != std::bit_width(object.suffix_offset)) return false;
  return IsStored(*object.base);
}

// Objects that the store has already are not written again, unless they are known to be corrupt:
// then this copy heals them.
Status Volume::Impl::FillObjectFrames(const std::vector<NewObject>& objects,
                                      std::vector<NewFrame>& frames,
                                      std::unordered_map<Digest, size_t>& placed) {
  for (const NewObject& object : objects) {
    ASSIGN_OR_RETURN(const bool stored, IsStored(object.digest));
    if (stored || placed.count(object.digest) != 0) continue;
    const ByteView bytes = *object.bytes;
    ASSIGN_OR_RETURN(const bool extends, MayExtend(object));
    frames.push_back(extends ? journal::ExtendFrame(object.digest, *object.base,
                                                    bytes.substr(object.suffix_offset))
                             : journal::BlobFrame(object.digest, bytes));
    placed.emplace(object.digest, frames.size() - 1);
  }
  return {};
}

Status Volume::Impl::Append(Stream& stream, Commit commit) {
  TRY(CheckWritable(stream));
  TRY(RecordSession(stream));
  std::vector<NewFrame> frames;
  std::unordered_map<Digest, size_t> placed;
  TRY(FillObjectFrames(commit.objects, frames, placed));

  const chain::RecordContext context{stream.id, format_.store_id, stream.agent, session_id_};
  ASSIGN_OR_RETURN(const chain::SealedRecord record,
                   chain::SealRecord(context, stream.head, commit.change, clock_.Now()));
  const RecordPlace place{stream.id, stream.agent, record.seq, record.hash, record.ts};
  meta::Batch batch;
  TRY(ApplyChange(*tables_, place, commit.change, batch));
  frames.push_back(RecordFrame(stream.id, record));

  const MutexLock lock(commit_mutex_);
  ASSIGN_OR_RETURN(const journal::Appended appended, journal_->Append(frames, commit.append_class));
  for (const auto& [digest, frame] : placed) {
    batch.Put(meta::LocationKey(digest), meta::EncodeLocation(appended.locations[frame]));
  }
  NoteHealed(placed, batch);
  index_->Apply(std::move(batch), appended.end);
  for (const NewObject& object : commit.objects) objects_->Remember(object.digest, object.bytes);
  stream.head = chain::Head{record.seq, record.hash, record.ts};
  WakeAfterAppend();
  const MutexLock queue_lock(queue_mutex_);
  lines_.push_back(QueuedLine{stream.id, record, appended.end});
  return {};
}

Status Volume::Impl::AppendIntent(const Stream& stream, const Intent& intent,
                                  journal::AppendClass append_class) {
  TRY(CheckWritable(stream));
  const Bytes payload = intent.Encode();
  const NewFrame frame{FrameType::kIntent, payload, {}};
  const MutexLock lock(commit_mutex_);
  TRY(journal_->Append({&frame, 1}, append_class));
  WakeAfterAppend();
  return {};
}

// What is constant for this opening of the store stands once in each chain that it changes.
Status Volume::Impl::RecordSession(Stream& stream) {
  if (stream.session_recorded || stream.head.seq == Seq()) return {};
  stream.session_recorded = true;
  Commit commit;
  commit.change.op = chain::Op::kSession;
  commit.change.detail =
      Json{{"host", EscapeInvalidUtf8(HostName())}, {"version", MEMOIRFS_VERSION}}.dump();
  commit.append_class = journal::AppendClass::kReserve;
  const Status status = Append(stream, std::move(commit));
  if (!status.ok()) stream.session_recorded = false;
  return status;
}

}  // namespace memoirfs::volume
