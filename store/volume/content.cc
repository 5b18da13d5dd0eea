// Content of files: commits, parts that are too big for one, and where objects lie.

#include "store/volume/bulk_session.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {

using chain::Op;

Result<Inode> Volume::Impl::CommitContent(StreamId stream_id, InodeId ino, const ContentId& content,
                                          std::span<const NewObject> objects,
                                          const Attributes& attributes, const chain::Actor& actor) {
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  const auto before = InodeOf(stream_id, ino);
  if (before.code() == Code::kNotFound || (before.ok() && before->nlink == 0)) {
    // Removed meanwhile: nothing of it is recorded any more.
    Inode gone;
    gone.id = ino;
    gone.attributes = attributes;
    gone.content = content;
    return gone;
  }
  TRY(before);
  Commit commit;
  const auto create = stream->creates.find(ino);
  if (create != stream->creates.end()) {
    commit.change = PutOfCreate(create->second);
    commit.change.path = tables_->PathOf(stream_id, create->second.parent, create->second.name);
  } else {
    commit.change.op = Op::kPut;
    commit.change.ino = ino;
    commit.change.replaced_content = before->content;
    commit.change.path = tables_->PathOf(stream_id, ino);
  }
  commit.change.content = content;
  commit.change.attributes = attributes;
  commit.change.attributes->btime = before->attributes.btime;
  commit.change.actor = actor;
  commit.objects.assign(objects.begin(), objects.end());
  TRY(Append(*stream, std::move(commit)));
  stream->creates.erase(ino);
  stream->truncations.erase(ino);
  return InodeOf(stream_id, ino);
}

Status Volume::Impl::NoteTruncation(StreamId stream_id, InodeId ino, uint64_t size) {
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  const auto inode = InodeOf(stream_id, ino);
  if (!inode.ok() || inode->nlink == 0) return {};
  Intent intent;
  intent.kind = Intent::Kind::kTruncate;
  intent.stream = stream_id;
  intent.ino = ino;
  intent.size = size;
  TRY(AppendIntent(*stream, intent, journal::AppendClass::kNormal));
  stream->truncations.insert_or_assign(ino, intent);
  return {};
}

Result<std::optional<journal::Location>> Volume::Impl::Find(const Digest& digest) {
  ASSIGN_OR_RETURN(const auto where, tables_->Location(digest));
  if (where) return where;
  const MutexLock lock(queue_mutex_);
  const auto staged = staged_.find(digest);
  if (staged == staged_.end()) return std::optional<journal::Location>();
  return std::optional<journal::Location>(staged->second);
}

// Whether the store has the object already, in a file that will not vanish. An object that is known
// to be corrupt does not count: another copy heals it.
Result<bool> Volume::Impl::IsStored(const Digest& digest) const {
  {
    const MutexLock lock(queue_mutex_);
    if (corrupt_.count(digest) != 0) return false;
  }
  ASSIGN_OR_RETURN(const auto where, tables_->Location(digest));
  return where.has_value();
}

// Under the lock of the commits, so that the list and its rows change in one order with what heals.
// A reader that is late may tell of a place where the object does not lie any more.
void Volume::Impl::OnCorrupt(const Digest& digest, const std::optional<journal::Location>& where,
                             const std::string& why) {
  const MutexLock lock(commit_mutex_);
  // Nor is one corrupt whose file is gone with the session that had staged it.
  const auto present = Find(digest);
  if (where && present.ok() && *present != where) return;
  {
    const MutexLock queue_lock(queue_mutex_);
    if (!corrupt_.emplace(digest, why).second) return;
  }
  NoteIncident({chain::Op::kQuarantine, digest, where, why});
  // Kept with the index, so that `status` knows after a restart; the committer makes it durable.
  meta::Batch batch;
  batch.Put(meta::CorruptKey(digest), why);
  index_->Apply(std::move(batch), journal_->durable());
}

Result<std::unique_ptr<Volume::ChunkSession>> Volume::Impl::StartChunkSession() {
  if (options_.read_only || journal_->failed()) {
    return Status(Code::kReadOnly, "the store is read-only");
  }
  return std::unique_ptr<ChunkSession>(std::make_unique<BulkSession>(*this));
}

}  // namespace memoirfs::volume
