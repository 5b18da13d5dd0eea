// Carrying out a purge that was decided (store/volume/purge.cc). All frames lie in packs by now,
// and the index, which held names, was destroyed with all of its files. Every step may be repeated.

#include "store/base/coding.h"
#include "store/base/log.h"
#include "store/volume/recovery.h"

namespace memoirfs::volume {
namespace {

// Whether a frame is the purged agent's, or an object's that is about to go.
bool Erases(const PurgePlan& plan, const journal::Location& where, ByteView payload) {
  Decoder in(payload);
  switch (where.type) {
    case journal::FrameType::kBlob:
    case journal::FrameType::kExtend:
      return plan.Erases(in.Hash(), where.pack);
    case journal::FrameType::kRecord:
      return StreamId(in.U32()) == plan.stream;
    case journal::FrameType::kIntent: {
      const auto intent = Intent::Decode(payload);
      return intent.ok() && intent->stream == plan.stream;
    }
    default:
      return false;
  }
}

}  // namespace

Status Recovery::RemoveFiles(const std::string& directory) {
  const auto names = v_.io_.List(directory);
  if (names.code() == Code::kNotFound) return {};
  TRY(names);
  for (const std::string& name : *names) TRY(v_.io_.Remove(directory + "/" + name));
  return v_.io_.SyncDirectory(directory);
}

// What a torn write left in quarantine may be anybody's, and nobody was told that it was saved: all
// of it goes.
Status Recovery::ErasePurged() {
  std::vector<journal::PackId> packs;
  for (const uint64_t number : packs_) packs.push_back({number, false});
  for (const uint64_t number : bulks_) packs.push_back({number, true});
  for (const journal::PackId pack : packs) {
    if (!purge_->Covers(pack)) continue;
    TRY(journal::EraseFrames(v_.io_, pack, [&](const auto& where, ByteView payload) {
      return Erases(*purge_, where, payload);
    }));
  }
  TRY(RemoveFiles("quarantine"));
  const std::string chain = chain::ChainDirectory(purge_->stream);
  TRY(RemoveFiles(chain));
  const Status removed = v_.io_.RemoveDirectory(chain);
  if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  return v_.io_.SyncDirectory("chains");
}

// Where it cannot be done now (a full disk has no room for a pack's copy), the agent stays gone and
// what is left of it is shown to nobody; the next opening tries again.
Status Recovery::CarryOutPurge() {
  const Status done = ErasePurged();
  if (done.ok() || done.code() == Code::kUnknownFormat) return done;
  v_.purge_pending_ = done.ToString();
  Log(LogLevel::kError, "volume.purge-pending",
      "bytes of an agent that was purged are still there; the next opening tries again: " +
          v_.purge_pending_);
  return {};
}

}  // namespace memoirfs::volume
