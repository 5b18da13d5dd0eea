// Purging an agent: its chain, its names, its history, and the bytes that no other agent refers to.
//
// The agent is taken off the mounts first, durably. Then its frames are erased from every pack,
// its chain and its rows go. A crash in between leaves a removed agent that can be purged again.

#include <array>

#include "store/base/coding.h"
#include "store/cas/chunk_tree.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

using meta::Table;

constexpr std::array kStreamTables = {Table::kDentry,  Table::kCookie,      Table::kInode,
                                      Table::kVersion, Table::kNameHistory, Table::kXattr,
                                      Table::kOrphan};

}  // namespace

// Every object that versions and attributes of a stream refer to. Trees whose nodes do not verify
// give what can be reached.
Result<std::set<Digest>> Volume::Impl::ObjectsOf(StreamId stream) {
  std::set<Digest> objects;
  const auto add = [&](const ContentId& content) {
    if (!objects.insert(content.digest).second || content.kind == ContentKind::kFlat) return;
    (void)cas::ChunkTree::ForEachObject(*objects_, content,
                                        [&](const Digest& digest, bool, uint64_t) {
                                          objects.insert(digest);
                                          return Status();
                                        })
        .ok();
  };
  for (const Table table : {Table::kVersion, Table::kInode}) {
    const Bytes prefix = meta::TablePrefix(table, stream);
    TRY(index_->Scan(prefix, prefix, [&](ByteView, ByteView value) {
      if (const auto row = meta::InodeRow::Decode(value); row.ok()) add(row->content);
      return true;
    }));
  }
  const Bytes prefix = meta::TablePrefix(Table::kXattr, stream);
  TRY(index_->Scan(prefix, prefix, [&](ByteView, ByteView value) {
    if (const auto content = meta::DecodeContentRow(value); content.ok()) add(*content);
    return true;
  }));
  return objects;
}

// An object that is stored as a suffix needs the one it extends.
Status Volume::Impl::KeepWithBases(Digest digest, std::set<Digest>& objects) {
  for (;;) {
    objects.erase(digest);
    ASSIGN_OR_RETURN(const auto where, tables_->Location(digest));
    if (!where || where->type != journal::FrameType::kExtend) return {};
    ASSIGN_OR_RETURN(const Bytes payload, packs_.ReadPayload(*where));
    Decoder in(payload);
    in.Hash();
    const Digest base = in.Hash();
    if (!in.ok() || base == digest) return {};
    digest = base;
  }
}

Result<std::set<Digest>> Volume::Impl::ObjectsOfOnly(const Stream& stream) {
  ASSIGN_OR_RETURN(std::set<Digest> objects, ObjectsOf(stream.id));
  for (const Stream* const other : Streams()) {
    if (other == &stream) continue;
    ASSIGN_OR_RETURN(const std::set<Digest> shared, ObjectsOf(other->id));
    for (const Digest& digest : shared) TRY(KeepWithBases(digest, objects));
  }
  return objects;
}

Status Volume::Impl::EraseFromPacks(StreamId stream, const std::set<Digest>& objects) {
  const auto erases = [&](const journal::Location& where, ByteView payload) {
    Decoder in(payload);
    switch (where.type) {
      case journal::FrameType::kBlob:
      case journal::FrameType::kExtend:
        return objects.count(in.Hash()) != 0;
      case journal::FrameType::kRecord:
        return StreamId(in.U32()) == stream;
      case journal::FrameType::kIntent: {
        const auto intent = Intent::Decode(payload);
        return intent.ok() && intent->stream == stream;
      }
      default:
        return false;
    }
  };
  ASSIGN_OR_RETURN(const auto names, io_.List("packs"));
  for (const std::string& name : names) {
    const journal::PackId pack{std::strtoull(name.c_str(), nullptr, 10),
                               name.find(".bulk") != std::string::npos};
    if (journal::PackPath(pack) != "packs/" + name) continue;
    TRY(journal::EraseFrames(io_, pack, erases));
    packs_.Invalidate(pack);
  }
  return {};
}

Status Volume::Impl::DropRows(StreamId stream, const std::set<Digest>& objects) {
  meta::Batch batch;
  for (const Table table : kStreamTables) {
    const Bytes prefix = meta::TablePrefix(table, stream);
    TRY(index_->Scan(prefix, prefix, [&](ByteView key, ByteView) {
      batch.Delete(Bytes(key));
      return true;
    }));
  }
  batch.Delete(meta::StreamKey(stream));
  for (const Digest& digest : objects) {
    batch.Delete(meta::LocationKey(digest));
    objects_->Forget(digest);
  }
  const MutexLock lock(commit_mutex_);
  index_->Apply(std::move(batch), journal_->end());
  return {};
}

Status Volume::Impl::RemoveChain(StreamId stream) {
  const std::string directory = chain::ChainDirectory(stream);
  const auto names = io_.List(directory);
  if (names.code() == Code::kNotFound) return {};
  TRY(names);
  for (const std::string& name : *names) TRY(io_.Remove(directory + "/" + name));
  TRY(io_.RemoveDirectory(directory));
  return io_.SyncDirectory("chains");
}

Status Volume::Impl::Purge(Stream& stream) {
  if (!FactsOf(stream).removed) TRY(SetRemoved(stream, true));
  const StreamId id = stream.id;
  ASSIGN_OR_RETURN(const std::set<Digest> objects, ObjectsOfOnly(stream));
  const MutexLock lock(checkpoint_mutex_);
  // Frames are erased from packs: the active journal becomes one.
  TRY(journal_->Rotate());
  TRY(SealFullJournals());
  TRY(EraseFromPacks(id, objects));
  segments_.erase(id);
  TRY(RemoveChain(id));
  TRY(DropRows(id, objects));
  {
    const MutexLock streams_lock(streams_mutex_);
    streams_.erase(id);
  }
  return CheckpointLocked();
}

}  // namespace memoirfs::volume
