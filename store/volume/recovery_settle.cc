// The end of recovery: streams, orphans, and the intents that no record swallowed.

#include "store/base/log.h"
#include "store/cas/chunk_tree.h"
#include "store/volume/recovery.h"

namespace memoirfs::volume {
namespace {

constexpr char kTornTail[] = "torn-tail";

}  // namespace

Status Recovery::LoadStreams() {
  Status failure;
  const Bytes prefix = meta::StreamPrefix();
  TRY(v_.index_->Scan(prefix, prefix, [&](ByteView key, ByteView value) {
    const auto row = meta::StreamRow::Decode(value);
    if (!row.ok()) {
      failure = row.status();
      return false;
    }
    v_.AddStream(std::make_unique<Stream>(meta::StreamOfKey(key), *row));
    return true;
  }));
  TRY(failure);
  TRY(UseUpStreams());
  for (const auto& [id, why] : broken_streams_) {
    const MutexLock lock(v_.checkpoint_mutex_);
    v_.CloseStream(id, why);
  }
  return {};
}

// Numbers of streams that have no row: purged ones, and ones whose chain is too damaged to have
// one.
Status Recovery::UseUpStreams() {
  ASSIGN_OR_RETURN(const uint32_t next, ReadNextStream(v_.io_));
  if (next > 1) v_.UseUpStream(StreamId(next - 1));
  for (const auto& [id, why] : broken_streams_) v_.UseUpStream(id);
  ASSIGN_OR_RETURN(const auto streams, chain::ListChains(v_.io_));
  for (const StreamId id : streams) v_.UseUpStream(id);
  return {};
}

Status Recovery::LoadCorrupt() {
  const Bytes prefix = meta::CorruptPrefix();
  return v_.index_->Scan(prefix, prefix, [&](ByteView key, ByteView value) {
    const MutexLock lock(v_.queue_mutex_);
    v_.corrupt_.emplace(meta::DigestOfCorruptKey(key), std::string(value));
    return true;
  });
}

// Inodes without a name were kept for handles that are gone now.
Status Recovery::DropOrphans() {
  meta::Batch batch;
  const Bytes prefix = meta::OrphanPrefix();
  TRY(v_.index_->Scan(prefix, prefix, [&](ByteView key, ByteView) {
    const meta::StreamInode orphan = meta::StreamInodeOfOrphanKey(key);
    batch.Delete(Bytes(key));
    batch.Delete(meta::InodeKey(orphan.stream, orphan.ino));
    const auto xattrs = v_.ListXattrs(orphan.stream, orphan.ino);
    if (!xattrs.ok()) return true;
    for (const std::string& name : *xattrs) {
      batch.Delete(meta::XattrKey(orphan.stream, orphan.ino, name));
    }
    return true;
  }));
  if (batch.empty()) return {};
  const MutexLock lock(v_.commit_mutex_);
  v_.index_->Apply(std::move(batch), v_.journal_->durable());
  return {};
}

// Where a record may be lost, an intent does not tell that its file was not recorded: settling it
// would put an empty or shorter file in the place of content that was acknowledged.
Status Recovery::SettleIntents() {
  if (may_lack_records_) {
    for (const auto& [key, intent] : creates_) {
      NoteFor(intent.stream, {"intent", "new file " + intent.name, "",
                              "not kept: its record may have been damaged"});
    }
    return {};
  }
  for (const auto& [key, intent] : creates_) {
    const auto stream = v_.FindStream(intent.stream);
    if (stream.ok()) TRY(SettleCreate(**stream, intent));
  }
  for (const auto& [key, intent] : truncations_) {
    const auto stream = v_.FindStream(intent.stream);
    if (stream.ok()) TRY(SettleTruncation(**stream, intent));
  }
  return {};
}

// A file that was created and not recorded before the daemon died: it exists, empty or as long as
// it was truncated to.
Status Recovery::SettleCreate(Stream& stream, const Intent& intent) {
  const MutexLock lock(stream.mutex);
  if (!stream.read_only_reason.empty()) return {};  // the packs keep it, and the next opening asks
  stream.next_id = std::max(stream.next_id, intent.ino.value + 1);
  const Status fits = v_.CheckNewEntry(stream.id, intent.parent, intent.name);
  if (!fits.ok()) return KeepCreate(stream, intent, fits);
  std::optional<Intent> truncation;
  const auto noted = truncations_.find({intent.stream, intent.ino});
  if (noted != truncations_.end()) truncation = noted->second;
  ASSIGN_OR_RETURN(Volume::Impl::Commit commit, v_.CommitOfCreate(intent, truncation));
  commit.append_class = journal::AppendClass::kReserve;
  const Status recorded = v_.Append(stream, std::move(commit));
  return recorded.ok() ? recorded : KeepCreate(stream, intent, recorded);
}

// Where there is no place for the file any more, it is gone. Otherwise it stays as it is, created
// and not recorded, and each checkpoint repeats it.
Status Recovery::KeepCreate(Stream& stream, const Intent& intent, const Status& why) {
  const bool no_place = why.code() == Code::kExists || why.code() == Code::kNotFound ||
                        why.code() == Code::kNotDirectory;
  if (no_place) {
    NoteFor(stream.id, {"intent", "new file " + intent.name, "", "not kept: " + why.ToString()});
    return {};
  }
  if (!IsShortage(why.code())) return why;
  Log(LogLevel::kError, "volume.intent-waits", why.ToString());
  ASSIGN_OR_RETURN(const meta::Batch shown, v_.RowsOfCreate(intent));
  v_.index_->ApplyPending(shown);
  stream.creates.insert_or_assign(intent.ino, intent);
  const auto truncation = truncations_.find({intent.stream, intent.ino});
  if (truncation != truncations_.end()) {
    stream.truncations.insert_or_assign(intent.ino, truncation->second);
  }
  return {};
}

// A truncation that was not recorded: the content is cut, or longer by zeros. What cannot be read
// or written now may be next time: it stays open, and each checkpoint repeats it.
Status Recovery::SettleTruncation(Stream& stream, const Intent& intent) {
  {
    const MutexLock lock(stream.mutex);
    if (!stream.read_only_reason.empty() || stream.creates.count(intent.ino) != 0) return {};
  }
  const Status cut = CutContent(stream, intent);
  if (cut.ok() || cut.code() == Code::kNotFound) return {};
  Log(LogLevel::kError, "volume.intent-waits", cut.ToString());
  const MutexLock lock(stream.mutex);
  stream.truncations.insert_or_assign(intent.ino, intent);
  return {};
}

// kNotFound where the file is gone.
Status Recovery::CutContent(Stream& stream, const Intent& intent) {
  ASSIGN_OR_RETURN(const Inode inode, v_.InodeOf(stream.id, intent.ino));
  if (inode.nlink == 0 || inode.content.size == intent.size) return {};
  std::vector<NewObject> objects;
  const auto content = cas::ResizeContent(
      *v_.objects_, inode.content, intent.size, [&](const Digest& digest, Buffer bytes) {
        objects.push_back(NewObject{digest, std::move(bytes), {}, 0});
        return Status();
      });
  // An object that is not there is no file that is not there.
  if (content.code() == Code::kNotFound) return {Code::kCorrupt, content.status().ToString()};
  TRY(content);
  Attributes attributes = inode.attributes;
  attributes.mtime = attributes.ctime = v_.clock_.Now();
  return status_internal::AsStatus(
      v_.CommitContent(stream.id, intent.ino, *content, objects, attributes, intent.actor));
}

// --- what was found -----------------------------------------------------------------------------

void Recovery::Note(Finding finding) { NoteFor(std::nullopt, std::move(finding)); }

// Any crash leaves a torn tail. Who may write nothing looks only, and tells what is found
// elsewhere.
LogLevel Recovery::LevelOf(const Finding& finding) const {
  if (v_.options_.read_only) return LogLevel::kInfo;
  return finding.what == kTornTail ? LogLevel::kWarn : LogLevel::kError;
}

void Recovery::NoteFor(std::optional<StreamId> stream, Finding finding) {
  Log(LevelOf(finding), "volume.recovery",
      finding.what + " " + finding.where +
          (finding.expected.empty() ? "" : ": expected " + finding.expected) + "; found " +
          finding.found);
  found_.push_back({stream, chain::Op::kRecover, std::move(finding)});
}

// What is cut off is named by its digest, as it will lie in quarantine.
Status Recovery::NoteTornTail(const journal::JournalFinding& finding) {
  const journal::ScanResult& scan = finding.scan;
  const std::string path = journal::JournalPath(finding.number);
  ASSIGN_OR_RETURN(const auto log, v_.io_.Open(path, OpenMode::kRead));
  ASSIGN_OR_RETURN(const Bytes tail, log->ReadAt(scan.good_end, scan.tail_end - scan.good_end));
  Note({kTornTail, path + " at " + std::to_string(scan.good_end), "",
        std::to_string(tail.size()) + " bytes with the SHA-256 " + Sha256::Of(tail).ToHex()});
  return {};
}

// In the chains; for who may write nothing, in the volume.
void Recovery::RecordFound() {
  if (v_.options_.read_only) return HandOverFound();
  for (Stream* const stream : v_.Streams()) {
    for (const chain::Op op : {chain::Op::kRecover, chain::Op::kRepair}) {
      std::vector<Finding> findings;
      for (const Found& found : found_) {
        // What concerns all was told by the opening that broke a stream.
        if (trying_again_ && !found.stream) continue;
        if (found.op == op && found.stream.value_or(stream->id) == stream->id) {
          findings.push_back(found.finding);
        }
      }
      chain::Change change;
      change.op = op;
      if (!findings.empty()) v_.RecordFindings(*stream, std::move(change), findings);
    }
  }
}

// A torn tail is what any crash leaves, and a repair that was asked for is no damage.
void Recovery::HandOverFound() {
  for (const Found& found : found_) {
    if (found.op == chain::Op::kRepair || found.finding.what == kTornTail) continue;
    v_.unrecorded_.push_back({found.stream, found.finding});
  }
}

}  // namespace memoirfs::volume
