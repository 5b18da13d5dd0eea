// Agents: streams by name, their genesis, removal and purge.

#include <algorithm>

#include "store/base/file_name.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {

using chain::Op;

// Once it is here a stream stays as long as the volume: whoever found it may go on using it.
void Volume::Impl::AddStream(std::unique_ptr<Stream> stream) {
  UseUpStream(stream->id);
  const MutexLock lock(streams_mutex_);
  streams_.emplace(stream->id, std::move(stream));
}

void Volume::Impl::UseUpStream(StreamId id) {
  const MutexLock lock(streams_mutex_);
  next_stream_ = std::max(next_stream_, id.value + 1);
}

uint32_t Volume::Impl::NextStream() const {
  const MutexLock lock(streams_mutex_);
  return next_stream_;
}

std::vector<Stream*> Volume::Impl::Streams() const {
  std::vector<Stream*> streams;
  const MutexLock lock(streams_mutex_);
  for (const auto& [id, stream] : streams_) {
    if (id != purged_.load()) streams.push_back(stream.get());
  }
  return streams;
}

Result<Stream*> Volume::Impl::FindStream(StreamId id) const {
  const MutexLock lock(streams_mutex_);
  const auto found = streams_.find(id);
  if (found == streams_.end() || id == purged_.load())
    return Status(Code::kNotFound, "there is no such stream");
  return found->second.get();
}

AgentFacts Volume::Impl::FactsOf(const Stream& stream) const {
  const MutexLock lock(stream.mutex);
  return AgentFacts{stream.agent,
                    stream.id,
                    stream.removed,
                    stream.head,
                    chain::ChainDirectory(stream.id),
                    stream.read_only_reason};
}

std::vector<AgentFacts> Volume::Impl::ListAgents() const {
  std::vector<AgentFacts> agents;
  for (const Stream* stream : Streams()) agents.push_back(FactsOf(*stream));
  std::sort(agents.begin(), agents.end(),
            [](const AgentFacts& a, const AgentFacts& b) { return a.name < b.name; });
  return agents;
}

Result<AgentFacts> Volume::Impl::AddAgent(const std::string& name, uint32_t uid, uint32_t gid) {
  TRY(CheckAgentName(name));
  const MutexLock agents_lock(agents_mutex_);
  TRY(CheckNoPurge());
  for (Stream* const stream : Streams()) {
    if (stream->agent != name) continue;
    if (!FactsOf(*stream).removed) {
      return Status(Code::kExists, "there is an agent '" + name + "' already");
    }
    TRY(SetRemoved(*stream, false));
    return FactsOf(*stream);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> made, MakeStream(name, uid, gid));
  const Stream& stream = *made;
  AddStream(std::move(made));
  // From here on the agent exists, whatever becomes of the barrier.
  TRY(Sync());
  return FactsOf(stream);
}

// Nobody else sees the stream before it has its genesis. Where that fails, its number is used up:
// some of the record may be on the disk.
Result<std::unique_ptr<Stream>> Volume::Impl::MakeStream(const std::string& name, uint32_t uid,
                                                         uint32_t gid) {
  StreamId id;
  {
    const MutexLock lock(streams_mutex_);
    id = StreamId(next_stream_++);
  }
  meta::StreamRow row;
  row.agent = name;
  row.next_id = kRootInode.value + 1;
  auto stream = std::make_unique<Stream>(id, row);
  const Nanos now = clock_.Now();
  Attributes root;
  root.mode = S_IFDIR | 0700;
  root.uid = uid;
  root.gid = gid;
  root.atime = root.mtime = root.ctime = root.btime = now;
  Commit commit;
  commit.change.op = Op::kGenesis;
  commit.change.ino = kRootInode;
  commit.change.attributes = root;
  {
    const MutexLock lock(stream->mutex);
    TRY(Append(*stream, std::move(commit)));
  }
  return stream;
}

Status Volume::Impl::SetRemoved(Stream& stream, bool removed) {
  {
    const MutexLock lock(stream.mutex);
    Commit commit;
    commit.append_class = journal::AppendClass::kReserve;
    commit.change.op = Op::kEvent;
    commit.change.detail = removed ? kAgentRemoved : kAgentRestored;
    TRY(Append(stream, std::move(commit)));
    stream.removed = removed;
  }
  return Sync();
}

Status Volume::Impl::RemoveAgent(const std::string& name, bool purge) {
  const MutexLock agents_lock(agents_mutex_);
  TRY(CheckNoPurge());
  for (Stream* const stream : Streams()) {
    const AgentFacts facts = FactsOf(*stream);
    if (facts.name != name || (facts.removed && !purge)) continue;
    if (purge) return DecidePurge(*stream);
    return SetRemoved(*stream, true);
  }
  return Status(Code::kNotFound, "there is no agent '" + name + "'");
}

}  // namespace memoirfs::volume
