// Opening the index, or beginning a new one and filling it from packs and chains.

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/volume/recovery.h"

namespace memoirfs::volume {
namespace {

constexpr size_t kFlushBytes = 8U << 20;
constexpr uint64_t kSmallIndexBytes = 8U << 20;

}  // namespace

Status Recovery::StartRebuild(const std::string& why) {
  rebuild_ = true;
  const bool new_store = logs_.empty() && packs_.empty() && bulks_.empty();
  // Of a purge the other agents learn nothing. Why it is tried again was told before.
  if (!new_store && !purge_ && !trying_again_) {
    Note({"index", kIndexDirectory, "the index of this store", "it had to be rebuilt: " + why});
  }
  v_.tables_.reset();
  v_.index_.reset();
  TRY(meta::DestroyIndex(v_.io_, kIndexDirectory));
  ASSIGN_OR_RETURN(v_.index_, meta::Index::Open(v_.io_, kIndexDirectory));
  v_.tables_ = std::make_unique<Tables>(*v_.index_);
  checkpoint_ = meta::CheckpointRow{};
  return {};
}

// By an earlier opening, which found it damaged or streams that lack a record, or by somebody.
Status Recovery::RebuildAsMarked() {
  ASSIGN_OR_RETURN(const Bytes why, ReadWholeFile(v_.io_, kRebuildMarker));
  trying_again_ = why == kTryAgain;
  if (trying_again_) return StartRebuild("a chain lacked a record");
  if (why != kRepairAskedFor) return StartRebuild("it was found damaged");
  TRY(StartRebuild("a repair was asked for"));
  for (Found& found : found_) found.op = chain::Op::kRepair;
  return {};
}

// What is missing now may be there at the next opening: it begins from packs and chains.
Status Recovery::LeaveMarker() {
  if (unreadable_ || !broken_streams_.empty()) {
    return WriteFileAtomically(v_.io_, kRebuildMarker, kTryAgain);
  }
  const bool there = rebuild_ && v_.io_.Stat(kRebuildMarker).ok();
  return there ? v_.io_.Remove(kRebuildMarker) : Status();
}

Status Recovery::OpenIndex() {
  if (purge_) return StartRebuild("an agent is being purged");
  if (v_.io_.Stat(kRebuildMarker).ok()) return RebuildAsMarked();
  auto index = meta::Index::Open(v_.io_, kIndexDirectory);
  if (!index.ok()) {
    if (!IsDamage(index.code())) return index.status();
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
  if (IsDamage(read.code())) return false;
  TRY(read);
  return true;
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
    // One that a newer memoirfs can read is not damaged, and must not be left out.
    if (!IsDamage(contents.code())) return contents.status();
    unreadable_ = true;
    Note({"pack", journal::PackPath(pack), "a readable pack", contents.status().ToString()});
    return {};
  }
  if (footer_damaged) {
    Note({"footer", journal::PackPath(pack), "the footer of its frames",
          "a damaged one: the frames were read instead"});
  }
  meta::Batch batch;
  for (const journal::PackedObject& object : contents->objects) {
    if (IsPurged(object.digest, object.location)) continue;
    batch.Put(meta::LocationKey(object.digest), meta::EncodeLocation(object.location));
  }
  if (pack.bulk) batch.Put(meta::BulkKey(pack.number), {});
  for (const journal::PackedRecord& record : contents->records) {
    journal::PackedRecord& last = last_in_packs_[StreamId(record.stream)];
    if (record.seq > last.seq) last = record;
  }
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
  ASSIGN_OR_RETURN(const std::string segment, chain::LastSegment(v_.io_, stream));
  ASSIGN_OR_RETURN(const Bytes lines, ReadWholeFile(v_.io_, segment));
  return WriteFileAtomically(v_.io_, segment, lines);
}

// Objects from footers, records from the chains' segments; what those lack comes with Replay.
Status Recovery::RebuildFromChains() {
  for (const uint64_t number : packs_) TRY(AdoptPack(journal::PackId{number, false}));
  ASSIGN_OR_RETURN(const auto streams, chain::ListChains(v_.io_));
  rebuilding_chains_ = true;
  for (const StreamId stream : streams) {
    if (IsPurged(stream)) continue;
    const Status status = RebuildFromChain(stream);
    if (status.ok()) continue;
    if (!IsDamage(status.code())) return status;
    // The rest may still come from the packs.
    distrusted_.insert(stream);
    NoteFor(stream, {"chain", chain::ChainDirectory(stream), "segments that can be read",
                     status.ToString() + KeepLastSegment(stream)});
  }
  rebuilding_chains_ = false;
  return FlushWhenFull(true);
}

// kNotFound where there is no segment.
Status Recovery::RebuildFromChain(StreamId stream) {
  TRY(RewriteLastSegment(stream));
  TRY(CheckAgainstPacks(stream));
  TRY(chain::ForEachLine(v_.io_, stream, [&](uint64_t number, std::string_view line) {
    const auto record = ParseLine(stream, line);
    if (record.ok()) return ReplayRecord(*record, line);
    return record.status().WithContext("line " + std::to_string(number));
  }));
  ASSIGN_OR_RETURN(const meta::StreamRow row, RowOf(stream));
  const Seq packed(last_in_packs_[stream].seq);
  if (row.seq <= packed) return {};
  NoteFor(stream, {"record",
                   fmt::format("{}, records {} to {}", chain::ChainDirectory(stream),
                               packed.value + 1, row.seq.value),
                   "records that a pack has as well", "records in the chain's file only"});
  return {};
}

// Records are linked: where the last one that the packs have is the same in the segments, all
// before it are. Where it is another, the segments are not what the store wrote.
Status Recovery::CheckAgainstPacks(StreamId stream) {
  const auto last = last_in_packs_.find(stream);
  if (last == last_in_packs_.end()) return {};
  const auto line = chain::FindLine(v_.io_, stream, Seq(last->second.seq));
  if (line.code() == Code::kNotFound) return {};  // the segments are shorter
  TRY(line);
  const auto payload = v_.packs_.ReadPayload(last->second.location);
  if (IsDamage(payload.code())) return {};
  TRY(payload);
  Decoder in(*payload);
  in.U32();
  in.U64();
  if (in.rest() == *line) return {};
  return Status(Code::kCorrupt, fmt::format("record {} is not the one in {}", last->second.seq,
                                            journal::PackPath(last->second.location.pack)));
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
  if (kept.code() != Code::kNotFound)
    Log(LogLevel::kError, "volume.quarantine", kept.status().ToString());
  return "";
}

}  // namespace memoirfs::volume
