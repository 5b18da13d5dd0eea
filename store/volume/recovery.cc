#include "store/volume/recovery.h"

#include <algorithm>

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/journal/clean_stop.h"
#include "store/volume/spare.h"

namespace memoirfs::volume {
namespace {

constexpr uint64_t kBlockBehindStop = 4096;

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

// A journal that was prepared and never written to.
Result<bool> Recovery::IsUnused(uint64_t number) {
  ASSIGN_OR_RETURN(const auto file, v_.io_.Open(journal::JournalPath(number), OpenMode::kRead));
  ASSIGN_OR_RETURN(const Bytes start, file->ReadAt(0, journal::FrameHeader::kSize));
  return start.find_first_not_of('\0') == Bytes::npos;
}

// The last frame of the journal says whether the store was stopped cleanly there.
Status Recovery::FindCleanStop() {
  if (logs_.empty()) return {};
  for (size_t i = 1; i < logs_.size(); ++i) {
    ASSIGN_OR_RETURN(const bool unused, IsUnused(logs_[i]));
    if (!unused) return {};
  }
  const journal::PackId pack{logs_.front(), false};
  const bool has_checkpoint = pack.number == checkpoint_.lsn.journal;
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
      *file, pack, has_checkpoint ? checkpoint_.lsn.offset : 0,
      [&](const journal::FrameHeader& header, const journal::Location&, ByteView payload) {
        if (header.type == journal::FrameType::kMark) return Status();
        const bool checkpoint = header.type == journal::FrameType::kCheckpoint;
        clean = checkpoint && !payload.empty() && payload.front() == 1;
        quiet = quiet && checkpoint;
        return Status();
      },
      bounds);
  if (!scan.ok() || !clean || scan->torn_tail || !scan->damage.empty()) return {};
  if (noted && (scan->good_end > stop->end.offset || scan->last_epoch != stop->epoch)) return {};
  stopped_cleanly_ = true;
  continues_ = quiet && has_checkpoint && !rebuild_;
  if (!continues_) return {};
  last_epoch_ = scan->last_epoch;
  clean_end_ = scan->good_end;
  return {};
}

Status Recovery::Report(const journal::JournalFinding& finding) {
  for (const journal::Damage& damage : finding.scan.damage) {
    const bool counts = journal::Lsn{finding.number, damage.offset} >= checkpoint_.lsn;
    NoteDamage(journal::JournalPath(finding.number), damage, counts);
  }
  if (finding.scan.torn_tail) TRY(NoteTornTail(finding));
  last_epoch_ = std::max(last_epoch_, finding.scan.last_epoch);
  return {};
}

void Recovery::NoteDamage(const std::string& path, const journal::Damage& damage, bool counts) {
  Note({"damage", path + " at " + std::to_string(damage.offset),
        "frames that were synced, " + std::to_string(damage.length) + " bytes", "no valid frame"});
  const bool may_be_record =
      !damage.header_valid || damage.header.type == journal::FrameType::kRecord;
  may_lack_records_ = may_lack_records_ || (may_be_record && counts);
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

Status Recovery::StartJournal() {
  const uint64_t now_seconds =
      static_cast<uint64_t>(std::max<Nanos>(v_.clock_.Now(), 0)) / 1'000'000'000;
  // It rises, and cannot be guessed: content must not be able to imitate a frame.
  const uint64_t random = Decoder(RandomBytes(sizeof(uint32_t))).U32();
  v_.epoch_ = std::max(last_epoch_ + 1, now_seconds << 32 | random);
  if (continues_) {
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

Status Recovery::Run() {
  TRY(ListFiles());
  TRY(ClearStaging());
  KeepSpare(v_.io_);
  ASSIGN_OR_RETURN(purge_, ReadPurgePlan(v_.io_));
  TRY(OpenIndex());
  TRY(FindCleanStop());
  if (!continues_) TRY(CarryJournals());
  if (purge_) TRY(CarryOutPurge());
  if (rebuild_) TRY(RebuildFromChains());
  TRY(AdoptBulkPacks());
  TRY(Replay());
  TRY(JudgeChainEnds());
  TRY(StartJournal());
  TRY(LoadStreams());
  TRY(LoadCorrupt());
  TRY(DropOrphans());
  TRY(SettleIntents());
  RecordFound();
  if (!continues_) TRY(v_.Checkpoint());
  TRY(LeaveMarker());
  if (purge_ && v_.purge_pending_.empty()) TRY(RemovePurgePlan(v_.io_));
  return {};
}

}  // namespace memoirfs::volume
