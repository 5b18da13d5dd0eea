#include "store/volume/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/journal/clean_stop.h"
#include "store/volume/spare.h"

namespace memoirfs::volume {
namespace {

constexpr size_t kFlushBytes = 8U << 20;
constexpr uint64_t kSmallIndexBytes = 8U << 20;
constexpr uint64_t kBlockBehindStop = 4096;
// Everything that recovery applies is durable: a position before that of every append.
constexpr journal::Lsn kDurable{0, 0};

void Warn(std::string_view site, const std::string& text) { Log(LogLevel::kWarn, site, text); }

}  // namespace

Status Recovery::ListFiles() {
  ASSIGN_OR_RETURN(logs_, journal::ListJournals(v_.io_));
  TRY(RemoveUnfinishedPacks());
  ASSIGN_OR_RETURN(const auto packs, journal::ListPacks(v_.io_));
  for (const journal::PackId pack : packs) (pack.bulk ? bulks_ : packs_).insert(pack.number);
  // A crash after a pack was made and before its journal was removed leaves both: the pack counts.
  std::vector<uint64_t> sealed;
  std::copy_if(logs_.begin(), logs_.end(), std::back_inserter(sealed),
               [&](uint64_t number) { return packs_.count(number) != 0; });
  for (const uint64_t number : sealed) {
    TRY(v_.io_.Remove(journal::JournalPath(number)));
    logs_.erase(std::find(logs_.begin(), logs_.end(), number));
  }
  v_.next_bulk_ = bulks_.empty() ? 1 : *bulks_.rbegin() + 1;
  return {};
}

// Packs that were being written when the machine stopped; their sources are still there.
Status Recovery::RemoveUnfinishedPacks() {
  ASSIGN_OR_RETURN(const auto names, v_.io_.List(journal::kPackDirectory));
  for (const std::string& name : names) {
    if (!name.ends_with(journal::kTemporarySuffix)) continue;
    TRY(v_.io_.Remove(std::string(journal::kPackDirectory) + "/" + name));
  }
  return {};
}

// Parts of files that were never committed: no record refers to them.
Status Recovery::ClearStaging() {
  ASSIGN_OR_RETURN(const auto names, v_.io_.List(journal::kStagingDirectory));
  for (const std::string& name : names) {
    const std::string path = std::string(journal::kStagingDirectory) + "/" + name;
    const auto facts = v_.io_.Stat(path);
    // A directory is the scratch index of a verification that was cut short.
    TRY(facts.ok() && facts->is_directory ? meta::DestroyIndex(v_.io_, path) : v_.io_.Remove(path));
  }
  return {};
}

Status Recovery::StartRebuild(const std::string& why) {
  rebuild_ = true;
  const bool new_store = logs_.empty() && packs_.empty() && bulks_.empty();
  if (!new_store) {
    Warn("volume.index-rebuild", "the index is rebuilt from chains and packs: " + why);
  }
  // Of a purge the other agents learn nothing.
  if (!new_store && !purge_) Note({"index", kIndexDirectory, "", "rebuilt: " + why});
  v_.tables_.reset();
  v_.index_.reset();
  TRY(meta::DestroyIndex(v_.io_, kIndexDirectory));
  ASSIGN_OR_RETURN(v_.index_, meta::Index::Open(v_.io_, kIndexDirectory));
  v_.tables_ = std::make_unique<Tables>(*v_.index_);
  checkpoint_ = meta::CheckpointRow{};
  return {};
}

// By an earlier opening, which found it damaged, or by somebody.
Status Recovery::RebuildAsAsked() {
  ASSIGN_OR_RETURN(const Bytes why, ReadWholeFile(v_.io_, kRebuildMarker));
  if (why != kRepairAskedFor) return StartRebuild("it was found damaged");
  TRY(StartRebuild("a repair was asked for"));
  for (Found& found : found_) found.op = chain::Op::kRepair;
  return {};
}

Status Recovery::OpenIndex() {
  if (purge_) return StartRebuild("an agent is being purged");
  if (v_.io_.Stat(kRebuildMarker).ok()) return RebuildAsAsked();
  auto index = meta::Index::Open(v_.io_, kIndexDirectory);
  if (!index.ok()) {
    if (index.code() != Code::kCorrupt && index.code() != Code::kNotFound) return index.status();
    return StartRebuild(index.status().ToString());
  }
  v_.index_ = std::move(*index);
  v_.tables_ = std::make_unique<Tables>(*v_.index_);
  const auto raw = v_.index_->Get(meta::CheckpointKey());
  if (!raw.ok()) return StartRebuild(raw.status().ToString());
  if (!raw->has_value()) return StartRebuild("it has no checkpoint");
  const auto row = meta::CheckpointRow::Decode(**raw);
  if (!row.ok() || row->generation != v_.IndexGeneration()) {
    return StartRebuild("it is not this store's");
  }
  const uint64_t number = row->lsn.journal;
  if (packs_.count(number) == 0 && std::find(logs_.begin(), logs_.end(), number) == logs_.end()) {
    return StartRebuild("its checkpoint is in journal " + std::to_string(number) +
                        ", which is not there");
  }
  ASSIGN_OR_RETURN(const bool sound, SmallIndexIsSound());
  if (!sound) return StartRebuild("it is damaged");
  checkpoint_ = *row;
  return {};
}

// A small index is read through, so that damage is mended before anyone meets it. A big one is not:
// opening must not take long; damage shows when a row is read, and is mended by the next opening.
Result<bool> Recovery::SmallIndexIsSound() {
  uint64_t bytes = 0;
  ASSIGN_OR_RETURN(const auto names, v_.io_.List(kIndexDirectory));
  for (const std::string& name : names) {
    const auto facts = v_.io_.Stat(std::string(kIndexDirectory) + "/" + name);
    if (facts.ok()) bytes += facts->size;
  }
  if (bytes > kSmallIndexBytes) return true;
  const Status read = v_.index_->Scan({}, {}, [](ByteView, ByteView) { return true; });
  if (read.code() == Code::kCorrupt) return false;
  TRY(read);
  return true;
}

// A journal that was prepared and never written to.
Result<bool> Recovery::IsUnused(uint64_t number) {
  ASSIGN_OR_RETURN(const auto file, v_.io_.Open(journal::JournalPath(number), OpenMode::kRead));
  ASSIGN_OR_RETURN(const Bytes start, file->ReadAt(0, journal::FrameHeader::kSize));
  return start.find_first_not_of('\0') == Bytes::npos;
}

// The last frame of the journal says that the store was stopped cleanly there.
Result<bool> Recovery::ContinuesCleanly() {
  if (rebuild_ || logs_.empty() || logs_.front() != checkpoint_.lsn.journal) return false;
  for (size_t i = 1; i < logs_.size(); ++i) {
    ASSIGN_OR_RETURN(const bool unused, IsUnused(logs_[i]));
    if (!unused) return false;
  }
  const journal::PackId pack{logs_.front(), false};
  // While the note of the stop is there, nothing was appended behind the end that it names. A block
  // more is read all the same: it must hold zeros.
  ASSIGN_OR_RETURN(const auto stop, journal::ReadCleanStop(v_.io_));
  const bool noted = stop && stop->end.journal == pack.number;
  journal::ScanBounds bounds;
  if (noted) bounds.end = stop->end.offset + kBlockBehindStop;
  ASSIGN_OR_RETURN(const auto file,
                   v_.io_.Open(journal::JournalPath(pack.number), OpenMode::kRead));
  bool clean = false;
  bool quiet = true;  // nothing but checkpoints and marks: no intent is open
  const auto scan = journal::ScanFrames(
      *file, pack, checkpoint_.lsn.offset,
      [&](const journal::FrameHeader& header, const journal::Location&, ByteView payload) {
        if (header.type == journal::FrameType::kMark) return Status();
        const bool checkpoint = header.type == journal::FrameType::kCheckpoint;
        clean = checkpoint && !payload.empty() && payload.front() == 1;
        quiet = quiet && checkpoint;
        return Status();
      },
      bounds);
  if (!scan.ok() || !clean || !quiet || scan->torn_tail || !scan->damage.empty()) return false;
  if (noted && (scan->good_end > stop->end.offset || scan->last_epoch != stop->epoch)) return false;
  last_epoch_ = scan->last_epoch;
  clean_end_ = scan->good_end;
  return true;
}

Status Recovery::Report(const journal::JournalFinding& finding) {
  const std::string path = journal::JournalPath(finding.number);
  for (const journal::Damage& damage : finding.scan.damage) {
    Log(LogLevel::kError, "volume.journal-damaged",
        path + " is damaged at offset " + std::to_string(damage.offset) + ", " +
            std::to_string(damage.length) + " bytes that had been acknowledged");
    Note({"damage", path + " at " + std::to_string(damage.offset),
          "frames that were synced, " + std::to_string(damage.length) + " bytes",
          "no valid frame"});
    const bool may_be_record =
        !damage.header_valid || damage.header.type == journal::FrameType::kRecord;
    const bool counts = journal::Lsn{finding.number, damage.offset} >= checkpoint_.lsn;
    may_lack_records_ = may_lack_records_ || (may_be_record && counts);
  }
  if (finding.scan.torn_tail) {
    Warn("volume.torn-tail", path + " ends in an unfinished write at " +
                                 std::to_string(finding.scan.good_end) +
                                 "; it is kept in quarantine");
    TRY(NoteTornTail(finding));
  }
  last_epoch_ = std::max(last_epoch_, finding.scan.last_epoch);
  return {};
}

Status Recovery::CarryJournals() {
  const auto ignore = [](const auto&, const auto&, ByteView) { return Status(); };
  ASSIGN_OR_RETURN(const auto findings, journal::ReplayJournals(v_.io_, {}, ignore));
  for (const journal::JournalFinding& finding : findings) TRY(Report(finding));
  TRY(journal::CarryJournals(v_.io_, findings));
  for (const journal::JournalFinding& finding : findings) {
    last_number_ = std::max(last_number_, finding.number);
    if (finding.scan.good_end > 0) packs_.insert(finding.number);
  }
  logs_.clear();
  return {};
}

Status Recovery::StartJournal(bool clean) {
  const uint64_t now_seconds =
      static_cast<uint64_t>(std::max<Nanos>(v_.clock_.Now(), 0)) / 1'000'000'000;
  // It rises, and cannot be guessed: content must not be able to imitate a frame.
  const uint64_t random = Decoder(RandomBytes(sizeof(uint32_t))).U32();
  v_.epoch_ = std::max(last_epoch_ + 1, now_seconds << 32 | random);
  if (clean) {
    const journal::Lsn at{logs_.front(), clean_end_};
    ASSIGN_OR_RETURN(v_.journal_,
                     journal::Journal::Continue(v_.io_, v_.options_.journal, at, v_.epoch_));
    return {};
  }
  // Above every number that was used: a location is never taken for another's.
  const uint64_t number = std::max(last_number_, packs_.empty() ? 0 : *packs_.rbegin()) + 1;
  ASSIGN_OR_RETURN(v_.journal_,
                   journal::Journal::Create(v_.io_, v_.options_.journal, number, v_.epoch_));
  return {};
}

Status Recovery::FlushWhenFull(bool all) {
  if (!all && v_.index_->overlay_bytes() < kFlushBytes) return {};
  return v_.index_->Flush(kDurable);
}

// The objects of a pack, by its footer.
Status Recovery::AdoptPack(journal::PackId pack) {
  bool footer_damaged = false;
  const auto contents = journal::ReadPackContents(v_.io_, pack, &footer_damaged);
  if (!contents.ok()) {
    // A newer memoirfs can read it: it is not damaged, and must not be left out.
    if (contents.code() == Code::kUnknownFormat) return contents.status();
    Log(LogLevel::kError, "volume.pack-unreadable", contents.status().ToString());
    Note({"pack", journal::PackPath(pack), "", contents.status().ToString()});
    return {};
  }
  if (footer_damaged) {
    Log(LogLevel::kError, "volume.footer-damaged",
        journal::PackPath(pack) + ": its footer is damaged; its frames were read instead");
    Note({"footer", journal::PackPath(pack), "the footer of its frames",
          "a damaged one: the frames were read instead"});
  }
  meta::Batch batch;
  for (const journal::PackedObject& object : contents->objects) {
    if (IsPurged(object.digest, object.location)) continue;
    batch.Put(meta::LocationKey(object.digest), meta::EncodeLocation(object.location));
  }
  if (pack.bulk) batch.Put(meta::BulkKey(pack.number), {});
  v_.index_->Apply(std::move(batch), kDurable);
  return FlushWhenFull(false);
}

Status Recovery::AdoptBulkPacks() {
  for (const uint64_t number : bulks_) {
    ASSIGN_OR_RETURN(const bool known, v_.tables_->Has(meta::BulkKey(number)));
    if (!known) TRY(AdoptPack(journal::PackId{number, true}));
  }
  return {};
}

// What the last segment holds may be in the page cache only, after a sync that failed; a rebuild
// takes its lines for good, so they are written and synced anew.
Status Recovery::RewriteLastSegment(StreamId stream) {
  const Result<std::string> segment = chain::LastSegment(v_.io_, stream);
  // None, or one is missing: no lines will be taken, for reading them finds the same.
  if (segment.code() == Code::kNotFound || segment.code() == Code::kCorrupt) return {};
  TRY(segment);
  ASSIGN_OR_RETURN(const Bytes lines, ReadWholeFile(v_.io_, *segment));
  return WriteFileAtomically(v_.io_, *segment, lines);
}

// Objects from footers, records from the chains' segments; what those lack comes with Replay.
Status Recovery::RebuildFromChains() {
  for (const uint64_t number : packs_) TRY(AdoptPack(journal::PackId{number, false}));
  ASSIGN_OR_RETURN(const auto streams, chain::ListChains(v_.io_));
  for (const StreamId stream : streams) {
    if (IsPurged(stream)) continue;
    TRY(RewriteLastSegment(stream));
    const Status status =
        chain::ForEachLine(v_.io_, stream, [&](uint64_t number, std::string_view line) {
          return ReplayRecord(line).WithContext(chain::ChainDirectory(stream) + ", line " +
                                                std::to_string(number));
        });
    // The rest may still come from the packs.
    if (status.ok()) continue;
    Log(LogLevel::kError, "volume.segment-damaged", status.ToString());
    NoteFor(stream, {"chain", chain::ChainDirectory(stream), "",
                     status.ToString() + KeepLastSegment(stream)});
  }
  return FlushWhenFull(true);
}

// A damaged segment is evidence, and its end may be written anew from the packs: a copy goes to
// quarantine first. Says where, for the record of the finding.
std::string Recovery::KeepLastSegment(StreamId stream) {
  const auto keep = [&]() -> Result<std::string> {
    ASSIGN_OR_RETURN(const std::string segment, chain::LastSegment(v_.io_, stream));
    ASSIGN_OR_RETURN(const Bytes lines, ReadWholeFile(v_.io_, segment));
    const std::string kept = fmt::format("{}/chain-{}-{}.jsonl", journal::kQuarantineDirectory,
                                         stream.value, Sha256::Of(lines).ToHex().substr(0, 16));
    TRY(WriteFileAtomically(v_.io_, kept, lines));
    return kept;
  };
  const Result<std::string> kept = keep();
  if (kept.ok()) return "; its last segment is kept as " + *kept;
  Log(LogLevel::kError, "volume.quarantine", kept.status().ToString());
  return "";
}

Status Recovery::Replay() {
  for (const uint64_t number : packs_) {
    if (number < checkpoint_.lsn.journal) continue;
    TRY(ReplayPack(number, number == checkpoint_.lsn.journal ? checkpoint_.lsn.offset : 0));
  }
  return FlushWhenFull(true);
}

Status Recovery::ReplayPack(uint64_t number, uint64_t from) {
  const journal::PackId pack{number, false};
  const auto contents = journal::ReadPackContents(v_.io_, pack, nullptr);
  if (contents.code() == Code::kUnknownFormat) return contents.status();
  ASSIGN_OR_RETURN(const auto file, v_.io_.Open(journal::PackPath(pack), OpenMode::kRead));
  const auto visit = [&](const journal::FrameHeader& header, const journal::Location& where,
                         ByteView payload) { return ReplayFrame(header, where, payload); };
  return status_internal::AsStatus(journal::ScanFrames(*file, pack, from, visit))
      .WithContext("replay of " + journal::PackPath(pack));
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
      return ReplayRecord(in.rest());
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

Status Recovery::ReplayRecord(std::string_view line) {
  ASSIGN_OR_RETURN(const chain::ParsedRecord record, chain::ParseRecord(line));
  if (broken_streams_.count(record.stream) != 0 || IsPurged(record.stream)) return {};
  ASSIGN_OR_RETURN(auto row, v_.tables_->Stream(record.stream));
  meta::StreamRow applied = row.value_or(meta::StreamRow{});
  if (record.seq <= applied.seq) {
    SwallowIntents(record);
    if (!rebuild_) QueueLine(record, line);  // a rebuild took it from the segment
    return {};
  }
  if (record.seq.value > applied.seq.value + 1) {
    TRY(FillGap(applied, record.stream, record.seq));
    ASSIGN_OR_RETURN(row, v_.tables_->Stream(record.stream));
    applied = row.value_or(meta::StreamRow{});
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

// Records whose frames are damaged are taken from the chain's segment.
Status Recovery::FillGap(const meta::StreamRow& row, StreamId stream, Seq upto) {
  for (uint64_t seq = row.seq.value + 1; seq < upto.value; ++seq) {
    const auto line = chain::FindLine(v_.io_, stream, Seq(seq));
    if (!line.ok()) return {};
    const auto record = chain::ParseRecord(*line);
    if (!record.ok()) return {};
    TRY(ApplyRecord(*record, *line));
    NoteFor(stream, {"record", "record " + std::to_string(seq), record->hash.ToHex(),
                     "only in the chain's file; its frame is damaged"});
  }
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

Status Recovery::Run() {
  TRY(ListFiles());
  TRY(ClearStaging());
  KeepSpare(v_.io_);
  ASSIGN_OR_RETURN(purge_, ReadPurgePlan(v_.io_));
  TRY(OpenIndex());
  ASSIGN_OR_RETURN(const bool clean, ContinuesCleanly());
  if (!clean) TRY(CarryJournals());
  if (purge_) TRY(CarryOutPurge());
  if (rebuild_) {
    rebuilding_chains_ = true;
    TRY(RebuildFromChains());
    rebuilding_chains_ = false;
  }
  TRY(AdoptBulkPacks());
  TRY(Replay());
  TRY(StartJournal(clean));
  TRY(LoadStreams());
  TRY(LoadCorrupt());
  TRY(DropOrphans());
  TRY(SettleIntents());
  RecordFound();
  if (!clean) TRY(v_.Checkpoint());
  if (rebuild_ && v_.io_.Stat(kRebuildMarker).ok()) TRY(v_.io_.Remove(kRebuildMarker));
  if (purge_ && v_.purge_pending_.empty()) TRY(RemovePurgePlan(v_.io_));
  return {};
}

}  // namespace memoirfs::volume
