// Deciding to purge an agent: its chain, its names, its history, and the bytes that no other agent
// refers to.
//
// One durable write decides (PurgePlan); before it the agent is whole, behind it the agent is gone.
// The next opening carries it out (recovery_purge.cc), so that what a crash leaves half done is
// done by the same code. Between the two the volume refuses every change: nothing new may come to
// refer to an object that is about to go.
//
// What goes is what is stored and nobody else names: also values of attributes that were replaced,
// and parts of files that no commit kept. Nobody knows whose those are, but they are nobody else's.
// What others name is taken from their chains, their frames and their rows together, so that damage
// in one of these gives nothing away. Where a tree of another agent cannot be read down to its
// chunks, only what the purged agent names goes.

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/cas/chunk_tree.h"
#include "store/journal/replay.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

using journal::FrameHeader;
using journal::FrameType;
using journal::Location;
using journal::PackId;
using meta::Table;

constexpr char kPurgeDecided[] = "an agent is being purged: open the store anew";

}  // namespace

class PurgePlanner {
 public:
  PurgePlanner(Volume::Impl& volume, StreamId purged) : v_(volume), purged_(purged) {}

  Result<PurgePlan> Run() {
    plan_.stream = purged_;
    TRY(ReadAllFrames());
    for (const Stream* const stream : v_.Streams()) {
      TRY(ReadChain(stream->id));
      TRY(v_.ForEachContent(stream->id,
                            [&](InodeId, const ContentId& content) { Name(stream->id, content); }));
    }
    const bool others_are_whole = Reach(others_, live_);
    AddBases();
    if (others_are_whole) {
      KeepDead(stored_);
    } else {
      Log(LogLevel::kWarn, "volume.purge-careful",
          "content of another agent is damaged: what cannot be told from its parts is kept");
      std::unordered_set<Digest> own;
      Reach(own_, own);
      KeepDead(own);
    }
    return std::move(plan_);
  }

 private:
  void Name(StreamId stream, const ContentId& content) {
    (stream == purged_ ? own_ : others_).insert(content);
  }
  void Name(std::string_view line) {
    const auto record = chain::ParseRecord(line);
    if (!record.ok()) return;  // it may stand elsewhere too
    if (record->change.content) Name(record->stream, *record->change.content);
    if (record->change.replaced_content) Name(record->stream, *record->change.replaced_content);
  }

  Status ReadAllFrames() {
    ASSIGN_OR_RETURN(const auto packs, journal::ListPacks(v_.io_));
    for (const PackId pack : packs) {
      uint64_t& last = pack.bulk ? plan_.last_bulk : plan_.last_pack;
      last = std::max(last, pack.number);
      TRY(ReadFrames(journal::PackPath(pack), pack));
    }
    ASSIGN_OR_RETURN(const auto journals, journal::ListJournals(v_.io_));
    for (const uint64_t number : journals) {
      plan_.last_pack = std::max(plan_.last_pack, number);
      TRY(ReadFrames(journal::JournalPath(number), PackId{number}));
    }
    return {};
  }

  // All of it was synced: whatever stands behind a gap counts.
  Status ReadFrames(const std::string& path, PackId pack) {
    ASSIGN_OR_RETURN(const auto file, v_.io_.Open(path, OpenMode::kRead));
    ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    const auto visit = [&](const FrameHeader&, const Location& where, ByteView payload) {
      ReadFrame(where.type, payload);
      return Status();
    };
    return status_internal::AsStatus(
               journal::ScanFrames(*file, pack, 0, visit, {.durable = PlaceIn(pack, size)}))
        .WithContext(path);
  }

  // The scan checked the payload against its header.
  void ReadFrame(FrameType type, ByteView payload) {
    Decoder in(payload);
    if (type == FrameType::kRecord) {
      in.U32();
      in.U64();
      if (in.ok()) Name(in.rest());
    } else if (type == FrameType::kBlob || type == FrameType::kExtend) {
      const Digest digest = in.Hash();
      if (in.ok()) stored_.insert(digest);
      if (type != FrameType::kExtend) return;
      const Digest base = in.Hash();
      if (in.ok()) bases_.emplace(digest, base);
    }
  }

  Status ReadChain(StreamId stream) {
    const Status read = chain::ForEachLine(v_.io_, stream, [&](uint64_t, std::string_view line) {
      Name(line);
      return Status();
    });
    // A chain that is damaged as a file is still in frames and rows.
    return read.code() == Code::kCorrupt ? Status() : read;
  }

  // False when not all of it can be read.
  bool Reach(const std::set<ContentId>& contents, std::unordered_set<Digest>& reached) {
    bool whole = true;
    for (const ContentId& content : contents) {
      reached.insert(content.digest);
      if (content.kind == ContentKind::kFlat) continue;
      const Status read = cas::ChunkTree::ForEachObject(*v_.objects_, content,
                                                        [&](const Digest& digest, bool, uint64_t) {
                                                          reached.insert(digest);
                                                          return Status();
                                                        });
      whole = read.ok() && whole;
    }
    return whole;
  }

  // An object that is stored as a suffix needs the one it extends.
  void AddBases() {
    std::vector<Digest> pending(live_.begin(), live_.end());
    while (!pending.empty()) {
      const auto [first, last] = bases_.equal_range(pending.back());
      pending.pop_back();
      for (auto base = first; base != last; ++base) {
        if (live_.insert(base->second).second) pending.push_back(base->second);
      }
    }
  }

  void KeepDead(const std::unordered_set<Digest>& candidates) {
    for (const Digest& digest : candidates) {
      if (live_.count(digest) == 0) plan_.objects.insert(digest);
    }
  }

  Volume::Impl& v_;
  const StreamId purged_;
  PurgePlan plan_;
  std::unordered_set<Digest> stored_;
  std::unordered_multimap<Digest, Digest> bases_;
  std::set<ContentId> own_;
  std::set<ContentId> others_;
  std::unordered_set<Digest> live_;
};

Status Volume::Impl::ForEachContent(StreamId stream, const ContentVisitor& visit) const {
  for (const Table table : {Table::kVersion, Table::kInode}) {
    const Bytes prefix = meta::TablePrefix(table, stream);
    TRY(index_->Scan(prefix, prefix, [&](ByteView key, ByteView value) {
      const auto row = meta::InodeRow::Decode(value);
      if (row.ok()) visit(meta::InodeOfKey(key), row->content);
      return true;
    }));
  }
  const Bytes prefix = meta::TablePrefix(Table::kXattr, stream);
  return index_->Scan(prefix, prefix, [&](ByteView key, ByteView value) {
    const auto content = meta::DecodeContentRow(value);
    if (content.ok()) visit(meta::InodeOfKey(key), *content);
    return true;
  });
}

Status Volume::Impl::CheckNoPurge() const {
  if (purged_.load() == StreamId()) return {};
  return Status(Code::kReadOnly, kPurgeDecided);
}

// From here on no change of any stream is begun, and none is under way.
void Volume::Impl::RefuseChanges() {
  for (Stream* const stream : Streams()) {
    const MutexLock lock(stream->mutex);
    if (stream->read_only_reason.empty()) stream->read_only_reason = kPurgeDecided;
  }
}

void Volume::Impl::AllowChanges() {
  for (Stream* const stream : Streams()) {
    const MutexLock lock(stream->mutex);
    if (stream->read_only_reason == kPurgeDecided) stream->read_only_reason.clear();
  }
}

Result<PurgePlan> Volume::Impl::PlanPurge(StreamId stream) {
  const MutexLock lock(checkpoint_mutex_);
  TRY(CheckpointLocked());
  RefuseChanges();
  auto plan = PlanFromSegments(stream);
  if (!plan.ok()) AllowChanges();
  return plan;
}

// The planner reads records from the segments: all that are acknowledged must stand there.
Result<PurgePlan> Volume::Impl::PlanFromSegments(StreamId stream) {
  TRY(Barrier());
  TRY(WriteSegments(journal_->durable()));
  return PurgePlanner(*this, stream).Run();
}

Status Volume::Impl::DecidePurge(const Stream& stream) {
  if (options_.read_only || journal_->failed()) {
    return Status(Code::kReadOnly, "the store is read-only: no agent can be purged");
  }
  TRY(WriteNextStream(io_, NextStream()));
  ASSIGN_OR_RETURN(const PurgePlan plan, PlanPurge(stream.id));
  // A write that fails may have decided all the same: changes stay refused.
  purged_ = stream.id;
  return WritePurgePlan(io_, plan);
}

}  // namespace memoirfs::volume
