// Frames and records behind the index's checkpoint, into the index.

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/volume/recovery.h"

namespace memoirfs::volume {

Status Recovery::Replay() {
  for (const uint64_t number : packs_) {
    if (number < checkpoint_.lsn.journal) continue;
    TRY(ReplayPack(journal::PackId{number, false},
                   number == checkpoint_.lsn.journal ? checkpoint_.lsn.offset : 0));
  }
  return FlushWhenFull(true);
}

// A pack that cannot be read does not keep the others. What it had may be in the chains' files.
Status Recovery::ReplayPack(journal::PackId pack, uint64_t from) {
  Status failure;  // of the index, for example: not the pack's
  const Status scanned =
      ScanPack(pack, from,
               [&](const journal::FrameHeader& header, const journal::Location& where,
                   ByteView payload) { return failure = ReplayFrame(header, where, payload); });
  TRY(failure.WithContext("replay of " + journal::PackPath(pack)));
  if (scanned.ok() || !IsDamage(scanned.code())) {
    return scanned.WithContext("replay of " + journal::PackPath(pack));
  }
  unreadable_ = true;
  may_lack_records_ = true;
  Note({"pack", journal::PackPath(pack), "frames that can be read", scanned.ToString()});
  return {};
}

Status Recovery::ScanPack(journal::PackId pack, uint64_t from, const journal::FrameVisitor& visit) {
  bool footer_damaged = false;
  ASSIGN_OR_RETURN(const auto contents, journal::ReadPackContents(v_.io_, pack, &footer_damaged));
  ASSIGN_OR_RETURN(const auto file, v_.io_.Open(journal::PackPath(pack), OpenMode::kRead));
  // All of a pack was synced: what is no frame is damage, up to its end.
  journal::ScanBounds bounds;
  if (!footer_damaged) {
    bounds = {contents.frames_end, journal::PlaceIn(pack, contents.frames_end)};
  }
  ASSIGN_OR_RETURN(const auto scan, journal::ScanFrames(*file, pack, from, visit, bounds));
  for (const journal::Damage& damage : scan.damage) {
    const journal::ByteRange range{damage.offset, damage.length};
    const auto& known = contents.damaged;
    const bool is_known = std::find(known.begin(), known.end(), range) != known.end();
    if (!is_known) NoteDamage(journal::PackPath(pack), damage, true);
  }
  return {};
}

Status Recovery::ReplayFrame(const journal::FrameHeader& header, const journal::Location& where,
                             ByteView payload) {
  switch (header.type) {
    case journal::FrameType::kBlob:
    case journal::FrameType::kExtend: {
      const Digest digest = Decoder(payload).Hash();
      if (IsPurged(digest, where)) return {};
      meta::Batch batch;
      batch.Put(meta::LocationKey(digest), meta::EncodeLocation(where));
      v_.index_->Apply(std::move(batch), kDurable);
      return FlushWhenFull(false);
    }
    case journal::FrameType::kRecord: {
      Decoder in(payload);
      const StreamId stream(in.U32());
      const Seq seq(in.U64());
      if (!in.ok()) return Status(Code::kCorrupt, "a record frame is too short");
      if (rebuild_ && creates_.empty() && truncations_.empty()) {
        ASSIGN_OR_RETURN(const auto row, v_.tables_->Stream(stream));
        if (row && seq <= row->seq) return {};  // its segment had it
      }
      ASSIGN_OR_RETURN(const chain::ParsedRecord record, chain::ParseRecord(in.rest()));
      return ReplayRecord(record, in.rest());
    }
    case journal::FrameType::kIntent:
      return ReplayIntent(payload);
    case journal::FrameType::kState:
    case journal::FrameType::kMark:
    case journal::FrameType::kCheckpoint:
    case journal::FrameType::kErased:
      return {};
  }
  return {};
}

Status Recovery::ReplayRecord(const chain::ParsedRecord& record, std::string_view line) {
  if (broken_streams_.count(record.stream) != 0 || IsPurged(record.stream)) return {};
  ASSIGN_OR_RETURN(auto row, v_.tables_->Stream(record.stream));
  meta::StreamRow applied = row.value_or(meta::StreamRow{});
  if (record.seq <= applied.seq) {
    SwallowIntents(record);
    if (!rebuild_) QueueLine(record, line);  // a rebuild took it from the segment
    return {};
  }
  if (record.seq.value > applied.seq.value + 1) {
    TRY(FillFromChain(record.stream, Seq(record.seq.value - 1)));
    ASSIGN_OR_RETURN(applied, RowOf(record.stream));
  }
  if (record.seq.value != applied.seq.value + 1 || record.prev_hash != applied.hash) {
    BreakStream(record.stream, "record " + std::to_string(applied.seq.value + 1) + " of agent '" +
                                   record.agent +
                                   "' is lost: neither journal nor chain file has it");
    return {};
  }
  return ApplyRecord(record, line);
}

// One damaged chain does not keep the others: its stream is read-only from here on.
void Recovery::BreakStream(StreamId stream, const std::string& why) {
  Log(LogLevel::kError, "volume.record-lost", why);
  broken_streams_.emplace(stream, why);
}

Status Recovery::ApplyRecord(const chain::ParsedRecord& record, std::string_view line) {
  meta::Batch batch;
  const RecordPlace place{record.stream, record.agent, record.seq, record.hash, record.ts};
  const Status fits = ApplyChange(*v_.tables_, place, record.change, batch);
  if (fits.code() == Code::kCorrupt && !v_.index_->damaged()) {
    BreakStream(record.stream, "record " + std::to_string(record.seq.value) + " of agent '" +
                                   record.agent + "': " + fits.ToString());
    return {};
  }
  TRY(fits);
  v_.index_->Apply(std::move(batch), kDurable);
  SwallowIntents(record);
  QueueLine(record, line);
  return FlushWhenFull(false);
}

// Only a record with content makes a truncation its own: a name or an attribute can change before.
void Recovery::SwallowIntents(const chain::ParsedRecord& record) {
  const IntentKey key{record.stream, record.change.ino};
  creates_.erase(key);
  if (record.change.op == chain::Op::kPut) truncations_.erase(key);
}

void Recovery::QueueLine(const chain::ParsedRecord& record, std::string_view line) {
  if (rebuilding_chains_) return;
  const MutexLock lock(v_.queue_mutex_);
  v_.lines_.push_back(Volume::Impl::QueuedLine{
      record.stream, chain::SealedRecord{record.seq, record.ts, record.hash, std::string(line)},
      kDurable});
}

// Records whose frames are damaged are taken from the chain's segments, as far as they follow.
Status Recovery::FillFromChain(StreamId stream, Seq upto) {
  ASSIGN_OR_RETURN(const meta::StreamRow before, RowOf(stream));
  Seq next(before.seq.value + 1);
  Digest last = before.hash;
  Status failure;  // not the chain's
  const Status read =
      chain::ForEachLineFrom(v_.io_, stream, next, [&](uint64_t, std::string_view line) {
        const Status end(Code::kInterrupted, "the end of what follows");
        const auto record = ParseLine(stream, line);
        const bool follows = record.ok() && record->seq == next && record->prev_hash == last;
        if (next > upto || !follows || broken_streams_.count(stream) != 0) return end;
        failure = ApplyRecord(*record, line);
        if (!failure.ok()) return failure;
        ++next.value;
        last = record->hash;
        return Status();
      });
  TRY(failure);
  if (!read.ok() && !IsDamage(read.code()) && read.code() != Code::kInterrupted) return read;
  ASSIGN_OR_RETURN(const meta::StreamRow row, RowOf(stream));
  if (row.seq == before.seq) return {};
  NoteFor(stream, {"record",
                   fmt::format("{}, records {} to {}", chain::ChainDirectory(stream),
                               before.seq.value + 1, row.seq.value),
                   "records that journal and chain have", "records in the chain's file only"});
  return {};
}

// A line of a segment, which must be a record of that stream, written for this store.
Result<chain::ParsedRecord> Recovery::ParseLine(StreamId stream, std::string_view line) const {
  ASSIGN_OR_RETURN(chain::ParsedRecord record, chain::ParseRecord(line));
  const chain::RecordContext context{stream, v_.format_.store_id, record.agent, {}};
  if (record.stream == stream && record.subject == chain::SubjectId(context)) return record;
  return Status(Code::kCorrupt, fmt::format("record {} was written for stream {} of {}",
                                            record.seq.value, record.stream.value, record.subject));
}

// The row of a stream that the index does not know is one before its first record.
Result<meta::StreamRow> Recovery::RowOf(StreamId stream) const {
  ASSIGN_OR_RETURN(auto row, v_.tables_->Stream(stream));
  return std::move(row).value_or(meta::StreamRow{});
}

Status Recovery::JudgeChainEnds() {
  ASSIGN_OR_RETURN(const auto listed, chain::ListChains(v_.io_));
  std::set<StreamId> streams(listed.begin(), listed.end());
  const Bytes prefix = meta::StreamPrefix();
  TRY(v_.index_->Scan(prefix, prefix, [&](ByteView key, ByteView) {
    streams.insert(meta::StreamOfKey(key));
    return true;
  }));
  for (const StreamId stream : streams) {
    if (!IsPurged(stream) && broken_streams_.count(stream) == 0) TRY(JudgeChainEnd(stream));
  }
  return {};
}

// Segments hold durable records only, and after a clean stop all of them. Where they have more, the
// journal lost its end, and what it lacks had been acknowledged: it is taken from the segments. Not
// where the store was stopped cleanly: then somebody else wrote it.
Status Recovery::JudgeChainEnd(StreamId stream) {
  const std::string where = chain::ChainDirectory(stream);
  ASSIGN_OR_RETURN(const meta::StreamRow row, RowOf(stream));
  const auto end = chain::FindEnd(v_.io_, stream);
  if (!end.ok()) {
    if (!IsDamage(end.code())) return end.status();
    NoteFor(stream, {"chain", where, "segments that can be read", end.status().ToString()});
    return {};
  }
  Seq last;
  std::string found = "no record";
  if (!end->last_line.empty()) {
    const auto record = ParseLine(stream, end->last_line);
    if (record.ok()) last = record->seq;
    if (!record.ok() && !stopped_cleanly_) return {};  // what a power cut leaves is written anew
    found = record.ok() ? fmt::format("{} records", last.value) : record.status().ToString();
  }
  const bool known = distrusted_.count(stream) != 0;  // that not all of it is the store's
  if (last > row.seq && (!stopped_cleanly_ || may_lack_records_)) {
    TRY(FillFromChain(stream, last));
    ASSIGN_OR_RETURN(const meta::StreamRow filled, RowOf(stream));
    if (filled.seq < last && !known) BreakStream(stream, where + " has records that do not follow");
    return {};
  }
  // What could not be continued is shorter.
  const bool as_left =
      end->unfinished == 0 && (last == row.seq || (trying_again_ && last < row.seq));
  if (!stopped_cleanly_ || known || as_left) return {};
  if (end->unfinished != 0) found += fmt::format(", and {} bytes more", end->unfinished);
  NoteFor(stream, {"chain", where, fmt::format("{} records, and nothing more", row.seq.value),
                   found + KeepLastSegment(stream)});
  return {};
}

Status Recovery::ReplayIntent(ByteView payload) {
  ASSIGN_OR_RETURN(const Intent intent, Intent::Decode(payload));
  if (IsPurged(intent.stream)) return {};
  const IntentKey key{intent.stream, intent.ino};
  switch (intent.kind) {
    case Intent::Kind::kCreate:
      creates_.insert_or_assign(key, intent);
      break;
    case Intent::Kind::kTruncate:
      truncations_.insert_or_assign(key, intent);
      break;
    case Intent::Kind::kCancel:
      creates_.erase(key);
      truncations_.erase(key);
      break;
  }
  return {};
}

}  // namespace memoirfs::volume
