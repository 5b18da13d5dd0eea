#pragma once

// Opening a store: what a crash left is made durable first, then replayed; the index is rebuilt
// where it is missing, damaged or another store's. Rules: store/INVARIANTS.md.
//
//   1. What counts for nothing is removed: packs and bulk packs that were not finished, logs that
//      are packs already. The index is opened, or destroyed and begun anew.
//   2. A store that was stopped cleanly goes on in its journal, and nothing of it is replayed.
//      Otherwise every journal is carried into a pack: its good frames, synced; a torn tail goes to
//      quarantine. From here on everything that counts is durable.
//   3. A purge that was decided is carried out on the packs (recovery_purge.cc).
//   4. For a new index, objects are taken from the packs' footers and records from the chains'
//      segments. Bulk packs that the index does not know are added.
//   5. Frames behind the index's checkpoint are replayed, from packs, in order; records that the
//      index has are skipped by each stream's seq, so replay may be repeated. Their lines are
//      queued for the segments, which may lack them. Then each chain's end is compared with the
//      segments' (recovery_replay.cc).
//   6. A fresh journal starts, unless the old one goes on. Streams are loaded, orphans dropped,
//      intents that are left over become records (recovery_settle.cc), and what was found on the
//      way is recorded in the chains. A checkpoint ends it, unless the store was stopped cleanly.
//
// A stream that lacks a record takes no changes, and the marker of a rebuild stays: each opening
// begins anew from packs and chains, and either has the record then or closes the stream again.
//
// All of it writes. Who compares the heads with what is known outside looks before (survey.h).

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/base/log.h"
#include "store/journal/replay.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {

// Everything that recovery applies is durable: a position before that of every append.
inline constexpr journal::Lsn kDurable{0, 0};

class Recovery {
 public:
  explicit Recovery(Volume::Impl& volume) : v_(volume) {}
  Status Run();

 private:
  using IntentKey = std::pair<StreamId, InodeId>;

  // What goes into the chains: of those streams that can be written, all or one.
  struct Found {
    std::optional<StreamId> stream;  // all of them without it
    chain::Op op = chain::Op::kRecover;
    Finding finding;
  };
  void Note(Finding finding);  // logged as well
  void NoteFor(std::optional<StreamId> stream, Finding finding);
  LogLevel LevelOf(const Finding& finding) const;
  Status NoteTornTail(const journal::JournalFinding& finding);
  void RecordFound();
  void HandOverFound();

  // What is there.
  Status ListFiles();
  Status RemoveUnfinishedPacks();
  Status ClearStaging();
  Status OpenIndex();
  Result<bool> SmallIndexIsSound();
  Status StartRebuild(const std::string& why);
  Status RebuildAsMarked();
  Status LeaveMarker();

  // The journals.
  Result<bool> IsUnused(uint64_t number);
  Status FindCleanStop();
  Status CarryJournals();
  Status Report(const journal::JournalFinding& finding);
  // `counts`: behind the checkpoint.
  void NoteDamage(const std::string& path, const journal::Damage& damage, bool counts);
  Status StartJournal();

  // A purge that was decided.
  Status CarryOutPurge();
  Status ErasePurged();
  Status RemoveFiles(const std::string& directory);
  bool IsPurged(StreamId stream) const { return purge_ && purge_->stream == stream; }
  bool IsPurged(const Digest& digest, const journal::Location& where) const {
    return purge_ && purge_->Erases(digest, where.pack);
  }

  // The index.
  Status AdoptPack(journal::PackId pack);
  Status AdoptBulkPacks();
  Status RewriteLastSegment(StreamId stream);
  std::string KeepLastSegment(StreamId stream);
  Status RebuildFromChains();
  Status RebuildFromChain(StreamId stream);
  Status CheckAgainstPacks(StreamId stream);
  Status Replay();
  Status ReplayPack(journal::PackId pack, uint64_t from);
  Status ScanPack(journal::PackId pack, uint64_t from, const journal::FrameVisitor& visit);
  Status ReplayFrame(const journal::FrameHeader& header, const journal::Location& where,
                     ByteView payload);
  Status ReplayRecord(const chain::ParsedRecord& record, std::string_view line);
  Result<chain::ParsedRecord> ParseLine(StreamId stream, std::string_view line) const;
  void BreakStream(StreamId stream, const std::string& why);
  Status ApplyRecord(const chain::ParsedRecord& record, std::string_view line);
  // For the chain's segment, which may lack it.
  void QueueLine(const chain::ParsedRecord& record, std::string_view line);
  Status FillFromChain(StreamId stream, Seq upto);
  Status JudgeChainEnds();
  Status JudgeChainEnd(StreamId stream);
  Result<meta::StreamRow> RowOf(StreamId stream) const;
  void SwallowIntents(const chain::ParsedRecord& record);
  Status ReplayIntent(ByteView payload);
  Status FlushWhenFull(bool all);

  // The end.
  Status LoadStreams();
  Status UseUpStreams();
  Status LoadCorrupt();
  Status DropOrphans();
  Status SettleIntents();
  Status SettleCreate(Stream& stream, const Intent& intent);
  Status KeepCreate(Stream& stream, const Intent& intent, const Status& why) REQUIRES(stream.mutex);
  Status SettleTruncation(Stream& stream, const Intent& intent);
  Status CutContent(Stream& stream, const Intent& intent);

  Volume::Impl& v_;
  std::vector<uint64_t> logs_;  // unsealed journals
  std::set<uint64_t> packs_;    // sealed or carried ones
  std::set<uint64_t> bulks_;
  std::optional<PurgePlan> purge_;
  std::vector<Found> found_;
  meta::CheckpointRow checkpoint_;
  bool rebuild_ = false;
  bool trying_again_ = false;       // what is found was told by an earlier opening
  bool rebuilding_chains_ = false;  // the lines come from the segments themselves
  bool stopped_cleanly_ = false;    // then journal, packs and chains' files say the same
  bool continues_ = false;          // the journal of a clean stop is the one that goes on
  uint64_t last_epoch_ = 0;
  uint64_t last_number_ = 0;  // of a journal that was carried
  uint64_t clean_end_ = 0;
  bool may_lack_records_ = false;  // damage behind the checkpoint may have been records
  bool unreadable_ = false;        // a file that may be readable another time
  std::map<StreamId, journal::PackedRecord> last_in_packs_;  // for a rebuild: the last records
  std::map<IntentKey, Intent> creates_;
  std::map<IntentKey, Intent> truncations_;
  std::map<StreamId, std::string> broken_streams_;
  std::set<StreamId> distrusted_;  // segments that are not, or not all, what the store wrote
};

}  // namespace memoirfs::volume
