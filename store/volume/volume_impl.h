#pragma once

// The parts of a volume, and what its files share. One file a concern:
//   volume.cc     the facade        agents.cc     agents, genesis        append.cc   one commit
//   namespace.cc  names             attributes.cc attributes, xattrs     content.cc  file content
//   committer.cc  barrier, segments, checkpoints, sealing                history.cc  the past
//   recovery*.cc  opening after a crash, rebuilding the index, carrying out a purge
//   purge.cc      deciding to purge an agent                          incidents.cc what was damaged
//   bulk_session.*  the parts of a big file

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "store/base/mutex.h"
#include "store/chain/segment.h"
#include "store/journal/journal.h"
#include "store/journal/pack.h"
#include "store/meta/index.h"
#include "store/volume/apply.h"
#include "store/volume/incidents.h"
#include "store/volume/layout.h"
#include "store/volume/purge_plan.h"
#include "store/volume/stream.h"
#include "store/volume/tables.h"
#include "store/volume/volume.h"

namespace memoirfs::volume {

class Volume::Impl : public cas::LocationTable, public cas::CorruptionListener {
 public:
  Impl(FileIo& io, Clock& clock, VolumeOptions options, StoreFormat format);
  ~Impl() override;

  // --- recovery.cc ---
  Status Open();

  // --- agents.cc ---
  Result<AgentFacts> AddAgent(const std::string& name, uint32_t uid, uint32_t gid);
  Status RemoveAgent(const std::string& name, bool purge);
  std::vector<AgentFacts> ListAgents() const;
  std::vector<Stream*> Streams() const;
  Result<Stream*> FindStream(StreamId id) const;

  // --- namespace.cc ---
  Result<Inode> GetInode(StreamId stream, InodeId ino) const;
  Result<Entry> Lookup(StreamId stream, InodeId parent, std::string_view name) const;
  Result<std::vector<Entry>> List(StreamId stream, InodeId dir, Cookie after, size_t limit) const;
  Result<Inode> Create(StreamId stream, InodeId parent, const std::string& name,
                       const NewNode& node, const chain::Actor& actor);
  Result<Inode> MakeEntry(chain::Op op, StreamId stream, InodeId parent, const std::string& name,
                          const NewNode& node, const std::string& target,
                          const chain::Actor& actor);
  Result<Inode> MakeLink(StreamId stream, InodeId ino, InodeId new_parent,
                         const std::string& new_name, const chain::Actor& actor);
  Result<Inode> Remove(chain::Op op, StreamId stream, InodeId parent, const std::string& name,
                       const chain::Actor& actor);
  Result<std::optional<Inode>> Rename(StreamId stream, InodeId parent, const std::string& name,
                                      InodeId new_parent, const std::string& new_name,
                                      RenameMode mode, const chain::Actor& actor);

  // --- attributes.cc ---
  Result<Inode> SetAttributes(StreamId stream, InodeId ino, const Attributes& attributes,
                              const chain::Actor& actor);
  Status SetXattr(StreamId stream, InodeId ino, const std::string& name,
                  const std::optional<Bytes>& value, const chain::Actor& actor);
  Result<Bytes> GetXattr(StreamId stream, InodeId ino, const std::string& name);
  Result<std::vector<std::string>> ListXattrs(StreamId stream, InodeId ino) const;
  Result<std::string> ReadLink(StreamId stream, InodeId ino);

  // --- content.cc ---
  Result<Inode> CommitContent(StreamId stream, InodeId ino, const ContentId& content,
                              std::span<const NewObject> objects, const Attributes& attributes,
                              const chain::Actor& actor);
  Status NoteTruncation(StreamId stream, InodeId ino, uint64_t size);
  Result<std::unique_ptr<ChunkSession>> StartChunkSession();
  Result<std::optional<journal::Location>> Find(const Digest& digest) override;
  void OnCorrupt(const Digest& digest, const std::optional<journal::Location>& where,
                 const std::string& why) override;

  // --- committer.cc ---
  Status Sync();
  Status Checkpoint();
  Status RunCommitterOnce();
  void StartCommitter();
  // Stops the committer; checkpoints and marks a clean stop where nothing failed.
  void Close();

  // --- history.cc ---
  Status ForEachRecord(StreamId stream, Seq from, const RecordVisitor& visit);
  Result<Inode> FindVersion(StreamId stream, std::string_view path, std::optional<Seq> seq) const;

  VolumeFacts Facts() const;

  FileIo& io_;
  Clock& clock_;
  const VolumeOptions options_;
  const StoreFormat format_;
  const std::string session_id_ = NewUuid();
  uint64_t epoch_ = 0;

  Mutex scratch_mutex_{LockRank::kSession};  // the index that verification compares with

  std::unique_ptr<meta::Index> index_;
  std::unique_ptr<Tables> tables_;
  std::unique_ptr<journal::Journal> journal_;
  journal::PackReader packs_;
  std::unique_ptr<cas::ObjectStore> objects_;

 private:
  friend class Recovery;
  friend class PurgePlanner;
  friend class BulkSession;
  friend class Verifier;

  // --- append.cc: one commit ---
  // A record with the objects it brings: appended in one write, shown in the index, queued for its
  // segment. The stream's mutex is held, which `change` was checked under.
  struct Commit {
    chain::Change change;
    std::vector<NewObject> objects;
    journal::AppendClass append_class = journal::AppendClass::kNormal;
  };
  Status Append(Stream& stream, Commit commit) REQUIRES(stream.mutex);
  Status AppendIntent(const Stream& stream, const Intent& intent, journal::AppendClass append_class)
      REQUIRES(stream.mutex);
  // The session record of this opening, before a stream's first change.
  Status RecordSession(Stream& stream) REQUIRES(stream.mutex);
  Status CheckWritable(const Stream& stream) REQUIRES(stream.mutex);
  Status RelieveIndex();
  Status FillObjectFrames(const std::vector<NewObject>& objects,
                          std::vector<journal::NewFrame>& frames,
                          std::unordered_map<Digest, size_t>& placed);
  Result<bool> MayExtend(const NewObject& object) const;
  Result<bool> IsStored(const Digest& digest) const;
  // Objects written anew that were corrupt are not any more. `written` is a map by digest.
  template <typename Map>
  void NoteHealed(const Map& written, meta::Batch& batch) {
    const MutexLock lock(queue_mutex_);
    for (const auto& [digest, where] : written) {
      if (corrupt_.erase(digest) == 0) continue;
      batch.Delete(meta::CorruptKey(digest));
      incidents_.push_back({chain::Op::kRepair, digest, std::nullopt, "it was stored anew"});
    }
  }
  // kNoSpace when the stream has given out all numbers.
  static Result<InodeId> NewInode(Stream& stream) REQUIRES(stream.mutex);
  Cookie NewCookie(Stream& stream) REQUIRES(stream.mutex) { return Cookie(stream.next_id++); }

  // --- namespace.cc ---
  Result<Inode> InodeOf(StreamId stream, InodeId ino) const;
  // Everything that a new entry needs to be true of its place.
  Status CheckNewEntry(StreamId stream, InodeId parent, const std::string& name) const;
  Result<meta::InodeRow> LiveDirectory(StreamId stream, InodeId ino) const;
  Result<meta::DentryRow> EntryAt(StreamId stream, InodeId parent, std::string_view name) const;
  Status CheckReplaceable(StreamId stream, const meta::DentryRow& moved,
                          const meta::DentryRow& target) const;
  Status CheckNotBelow(StreamId stream, InodeId dir, InodeId candidate) const;
  Status FillRename(Stream& stream, const meta::DentryRow& moved, RenameMode mode,
                    chain::Change& change) REQUIRES(stream.mutex);
  void ForgetTruncation(Stream& stream, InodeId ino) REQUIRES(stream.mutex);
  static chain::Change PutOfCreate(const Intent& create);
  Result<Commit> CommitOfCreate(const Intent& create, const std::optional<Intent>& truncation);
  Result<meta::Batch> RowsOfCreate(const Intent& create) const;
  Status SettleReplaced(Stream& stream, InodeId ino, RenameMode mode) REQUIRES(stream.mutex);
  Status CancelCreate(Stream& stream, const Intent& create) REQUIRES(stream.mutex);
  Result<meta::Batch> RowsOfRemoval(StreamId stream, InodeId directory) const;

  // --- agents.cc ---
  void AddStream(std::unique_ptr<Stream> stream);
  Result<std::unique_ptr<Stream>> MakeStream(const std::string& name, uint32_t uid, uint32_t gid);
  // No stream that is made from now on gets this number.
  void UseUpStream(StreamId id);
  uint32_t NextStream() const;
  AgentFacts FactsOf(const Stream& stream) const;
  Status SetRemoved(Stream& stream, bool removed);

  // --- purge.cc ---
  Status DecidePurge(const Stream& stream);
  Status CheckNoPurge() const;
  Result<PurgePlan> PlanPurge(StreamId stream);
  Result<PurgePlan> PlanFromSegments(StreamId stream) REQUIRES(checkpoint_mutex_);
  void RefuseChanges();
  void AllowChanges();
  // The contents that rows of the index name, by the inode that has them; attributes' values too.
  using ContentVisitor = std::function<void(InodeId ino, const ContentId& content)>;
  Status ForEachContent(StreamId stream, const ContentVisitor& visit) const;

  // --- incidents.cc ---
  // `change` says what kind of record and of which inode.
  void RecordFindings(Stream& stream, chain::Change change, const std::vector<Finding>& findings);
  void NoteIncident(ObjectIncident incident);
  // Writes the records of what was noted. Not with a lock of a stream or above held.
  void RecordIncidents() EXCLUDES(checkpoint_mutex_);

  // --- committer.cc ---
  struct QueuedLine {
    StreamId stream;
    chain::SealedRecord record;
    journal::Lsn end;
  };
  Status Barrier();
  Status WriteSegments(journal::Lsn durable) REQUIRES(checkpoint_mutex_);
  Status WriteLine(StreamId stream, const chain::SealedRecord& record) REQUIRES(checkpoint_mutex_);
  Status BreakSegment(StreamId stream, const Status& why) REQUIRES(checkpoint_mutex_);
  // It takes no changes from here on, and its segments stay as they are.
  void CloseStream(StreamId stream, const std::string& why) REQUIRES(checkpoint_mutex_);
  Status FillSegment(StreamId stream, chain::SegmentWriter& segment, Seq last)
      REQUIRES(checkpoint_mutex_);
  Status SyncSegments() REQUIRES(checkpoint_mutex_);
  // `next` is the first record that is about to be appended.
  Result<chain::SegmentWriter*> SegmentOf(StreamId stream, Seq next) REQUIRES(checkpoint_mutex_);
  Status CheckpointLocked() REQUIRES(checkpoint_mutex_);
  Status ReemitIntents();
  Status SealFullJournals() REQUIRES(checkpoint_mutex_);
  // Whether there is nothing to make durable, to write out or to seal.
  bool IsSettled() const;
  Status WriteOut() REQUIRES(checkpoint_mutex_);
  // What was appended before the call is in segments and index, unsynced there.
  Status WriteOutAll() EXCLUDES(checkpoint_mutex_);
  Status KeepHouse() REQUIRES(checkpoint_mutex_);
  Status CommitInTime();
  bool NeedsHousekeeper() const;
  void WakeHousekeeper();
  void CommitterLoop();
  void HousekeeperLoop();
  void WakeAfterAppend();
  Status StopCleanly() EXCLUDES(checkpoint_mutex_);
  // Which index a checkpoint row belongs to: not another store's.
  uint64_t IndexGeneration() const;

  std::atomic<uint64_t> next_bulk_{1};

  mutable Mutex streams_mutex_{LockRank::kStreams};
  std::map<StreamId, std::unique_ptr<Stream>> streams_ GUARDED_BY(streams_mutex_);
  uint32_t next_stream_ GUARDED_BY(streams_mutex_) = 1;
  // A stream whose purge is decided: nobody finds it, and the volume changes nothing any more.
  std::atomic<StreamId> purged_{};
  // What a read-only opening found and could not record. Set by recovery.
  struct Unrecorded {
    std::optional<StreamId> stream;  // all of them without it
    Finding finding;
  };
  std::vector<Unrecorded> unrecorded_;
  std::string purge_pending_;  // why a purge is not carried out yet; set by recovery

  Mutex agents_mutex_{LockRank::kSession};  // one agent is added or removed at a time
  Mutex commit_mutex_{LockRank::kCommit};

  mutable Mutex queue_mutex_{LockRank::kLeaf};
  std::deque<QueuedLine> lines_ GUARDED_BY(queue_mutex_);
  std::unordered_multimap<Digest, journal::Location> staged_ GUARDED_BY(queue_mutex_);
  std::map<Digest, std::string> corrupt_ GUARDED_BY(queue_mutex_);
  std::vector<ObjectIncident> incidents_ GUARDED_BY(queue_mutex_);  // not recorded yet

  Mutex checkpoint_mutex_{LockRank::kCheckpoint};
  std::map<StreamId, std::unique_ptr<chain::SegmentWriter>> segments_ GUARDED_BY(checkpoint_mutex_);

  std::set<StreamId> broken_segments_ GUARDED_BY(checkpoint_mutex_);

  Mutex committer_mutex_{LockRank::kLeaf};
  CondVar committer_wake_;
  CondVar housekeeper_wake_;
  bool stopping_ GUARDED_BY(committer_mutex_) = false;
  bool housekeeping_ GUARDED_BY(committer_mutex_) = false;
  std::thread committer_;
  std::thread housekeeper_;
  bool opened_ = false;
};

}  // namespace memoirfs::volume
