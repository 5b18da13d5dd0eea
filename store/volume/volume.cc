#include "store/volume/volume.h"

#include <sys/stat.h>

#include "store/volume/recovery.h"
#include "store/volume/spare.h"
#include "store/volume/store_lock.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {

// --- creating a store ---------------------------------------------------------------------------

Status InitStore(FileIo& io, const VolumeOptions& options) {
  if (io.Stat("FORMAT").ok()) {
    TRY(ReadFormat(io));
    return Status(Code::kExists, io.root() + " holds a store already");
  }
  TRY(CreateLayout(io));
  // Opening it once makes the first journal and the index, and shows that it can be opened.
  VolumeOptions quiet = options;
  quiet.background = false;
  return status_internal::AsStatus(Volume::Open(io, Clock::Real(), quiet));
}

namespace {

// Where the folder above may not be opened, its owner has to see to it.
Status MakeNameDurable(const std::string& path) {
  const auto parent = OpenRealIo(path + "/..");
  return parent.ok() ? (*parent)->SyncDirectory(".") : Status();
}

}  // namespace

Status InitStore(const std::string& path, const VolumeOptions& options) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "create " + path);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<FileIo> io, OpenRealIo(path));
  // What is there already is judged first: no lock file is left in a directory that is no store.
  if (io->Stat("FORMAT").ok()) return InitStore(*io, options);
  TRY(CheckNothingForeign(*io));
  ASSIGN_OR_RETURN(const StoreLock lock, StoreLock::Acquire(path, ""));
  if (::chmod(path.c_str(), 0700) != 0) return Status::FromErrno(errno, "chmod " + path);
  TRY(InitStore(*io, options));
  return MakeNameDurable(path);
}

// --- opening and closing ------------------------------------------------------------------------

Volume::Impl::Impl(FileIo& io, Clock& clock, VolumeOptions options, StoreFormat format)
    : io_(io), clock_(clock), options_(options), format_(std::move(format)), packs_(io) {
  objects_ = std::make_unique<cas::ObjectStore>(packs_, *this, this, options_.objects);
}

Volume::Impl::~Impl() { Close(); }

Status Volume::Impl::Open() {
  TRY(Recovery(*this).Run());
  opened_ = true;
  StartCommitter();
  return {};
}

Volume::Volume(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Volume::~Volume() = default;

Result<std::unique_ptr<Volume>> Volume::Open(FileIo& io, Clock& clock, VolumeOptions options) {
  ASSIGN_OR_RETURN(StoreFormat format, ReadFormat(io));
  TRY(PrepareDirectories(io));
  auto impl = std::make_unique<Impl>(io, clock, options, std::move(format));
  Status opened = impl->Open();
  if (!opened.ok() && impl->index_ && impl->index_->damaged()) {
    // A big index is not read through beforehand. It can be made anew.
    TRY(WriteFileAtomically(io, kRebuildMarker, {}));
    impl = std::make_unique<Impl>(io, clock, options, impl->format_);
    opened = impl->Open();
  }
  if (IsFull(opened.code())) {
    GiveSpareBack(io);
    impl = std::make_unique<Impl>(io, clock, options, impl->format_);
    opened = impl->Open();
  }
  TRY(opened);
  return std::unique_ptr<Volume>(new Volume(std::move(impl)));
}

VolumeFacts Volume::Impl::Facts() const {
  VolumeFacts facts;
  facts.store_id = format_.store_id;
  facts.session_id = session_id_;
  facts.end = journal_->end();
  facts.durable = journal_->durable();
  facts.barriers = journal_->sync_count();
  facts.overlay_bytes = index_->overlay_bytes();
  facts.agents = ListAgents();
  facts.purge_pending = purge_pending_;
  facts.read_only = options_.read_only || journal_->failed();
  if (journal_->failed()) facts.read_only_reason = "a write to the journal failed";
  for (const Stream* stream : Streams()) {
    const MutexLock lock(stream->mutex);
    facts.pending_creates += stream->creates.size();
  }
  const MutexLock lock(queue_mutex_);
  for (const auto& [digest, why] : corrupt_) facts.corrupt.push_back({digest, why});
  return facts;
}

// --- the facade ---------------------------------------------------------------------------------

Result<AgentFacts> Volume::AddAgent(const std::string& name, uint32_t uid, uint32_t gid) {
  return impl_->AddAgent(name, uid, gid);
}
Status Volume::RemoveAgent(const std::string& name, bool purge) {
  return impl_->RemoveAgent(name, purge);
}
std::vector<AgentFacts> Volume::ListAgents() const { return impl_->ListAgents(); }

Result<AgentFacts> Volume::FindAgent(const std::string& name) const {
  for (AgentFacts& agent : impl_->ListAgents()) {
    if (agent.name == name && !agent.removed) return std::move(agent);
  }
  return Status(Code::kNotFound, "there is no agent '" + name +
                                     "'. Add it with 'memoirfs agent "
                                     "add'");
}

Result<Inode> Volume::GetInode(StreamId stream, InodeId ino) const {
  return impl_->GetInode(stream, ino);
}
Result<Entry> Volume::Lookup(StreamId stream, InodeId parent, std::string_view name) const {
  return impl_->Lookup(stream, parent, name);
}
Result<std::vector<Entry>> Volume::List(StreamId stream, InodeId dir, Cookie after,
                                        size_t limit) const {
  return impl_->List(stream, dir, after, limit);
}
Result<std::string> Volume::ReadLink(StreamId stream, InodeId ino) const {
  return impl_->ReadLink(stream, ino);
}
Result<Bytes> Volume::GetXattr(StreamId stream, InodeId ino, const std::string& name) const {
  return impl_->GetXattr(stream, ino, name);
}
Result<std::vector<std::string>> Volume::ListXattrs(StreamId stream, InodeId ino) const {
  return impl_->ListXattrs(stream, ino);
}

Result<Inode> Volume::Create(StreamId stream, InodeId parent, const std::string& name,
                             const NewNode& node, const chain::Actor& actor) {
  return impl_->Create(stream, parent, name, node, actor);
}
Result<Inode> Volume::MakeDirectory(StreamId stream, InodeId parent, const std::string& name,
                                    const NewNode& node, const chain::Actor& actor) {
  return impl_->MakeEntry(chain::Op::kMkdir, stream, parent, name, node, {}, actor);
}
Result<Inode> Volume::MakeSymlink(StreamId stream, InodeId parent, const std::string& name,
                                  const NewNode& node, const std::string& target,
                                  const chain::Actor& actor) {
  return impl_->MakeEntry(chain::Op::kSymlink, stream, parent, name, node, target, actor);
}
Result<Inode> Volume::MakeLink(StreamId stream, InodeId ino, InodeId new_parent,
                               const std::string& new_name, const chain::Actor& actor) {
  return impl_->MakeLink(stream, ino, new_parent, new_name, actor);
}
Result<Inode> Volume::Unlink(StreamId stream, InodeId parent, const std::string& name,
                             const chain::Actor& actor) {
  return impl_->Remove(chain::Op::kUnlink, stream, parent, name, actor);
}
Status Volume::RemoveDirectory(StreamId stream, InodeId parent, const std::string& name,
                               const chain::Actor& actor) {
  return status_internal::AsStatus(impl_->Remove(chain::Op::kRmdir, stream, parent, name, actor));
}
Result<std::optional<Inode>> Volume::Rename(StreamId stream, InodeId parent,
                                            const std::string& name, InodeId new_parent,
                                            const std::string& new_name, RenameMode mode,
                                            const chain::Actor& actor) {
  return impl_->Rename(stream, parent, name, new_parent, new_name, mode, actor);
}
Result<Inode> Volume::SetAttributes(StreamId stream, InodeId ino, const Attributes& attributes,
                                    const chain::Actor& actor) {
  return impl_->SetAttributes(stream, ino, attributes, actor);
}
Status Volume::SetXattr(StreamId stream, InodeId ino, const std::string& name,
                        const std::optional<Bytes>& value, const chain::Actor& actor) {
  return impl_->SetXattr(stream, ino, name, value, actor);
}

Result<Inode> Volume::CommitContent(StreamId stream, InodeId ino, const ContentId& content,
                                    std::span<const NewObject> objects,
                                    const Attributes& attributes, const chain::Actor& actor) {
  return impl_->CommitContent(stream, ino, content, objects, attributes, actor);
}
Status Volume::NoteTruncation(StreamId stream, InodeId ino, uint64_t size) {
  return impl_->NoteTruncation(stream, ino, size);
}
cas::ObjectStore& Volume::objects() { return *impl_->objects_; }
Result<std::unique_ptr<Volume::ChunkSession>> Volume::StartChunkSession() {
  return impl_->StartChunkSession();
}

Status Volume::Sync() { return impl_->Sync(); }
Status Volume::Checkpoint() { return impl_->Checkpoint(); }
Status Volume::RunCommitterOnce() { return impl_->RunCommitterOnce(); }

Status Volume::ForEachRecord(StreamId stream, Seq from, const RecordVisitor& visit) const {
  return impl_->ForEachRecord(stream, from, visit);
}
Result<Inode> Volume::FindVersion(StreamId stream, std::string_view path,
                                  std::optional<Seq> seq) const {
  return impl_->FindVersion(stream, path, seq);
}

Result<SpaceFacts> Volume::Space() const { return impl_->io_.Space(); }
VolumeFacts Volume::Facts() const { return impl_->Facts(); }
FileIo& Volume::io() { return impl_->io_; }
Clock& Volume::clock() { return impl_->clock_; }

}  // namespace memoirfs::volume
