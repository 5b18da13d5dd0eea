#include "store/volume/record_frames.h"

#include "store/base/coding.h"
#include "store/journal/pack.h"
#include "store/journal/replay.h"

namespace memoirfs::volume {

Result<std::map<Seq, journal::Location>> FindRecordFrames(FileIo& io, StreamId stream, Seq first,
                                                          Seq last) {
  std::map<Seq, journal::Location> found;
  const auto note = [&](StreamId owner, Seq seq, const journal::Location& where) {
    if (owner == stream && seq >= first && seq <= last) found.emplace(seq, where);
  };
  ASSIGN_OR_RETURN(const auto packs, journal::ListPacks(io));
  for (const journal::PackId pack : packs) {
    if (pack.bulk) continue;
    const auto contents = journal::ReadPackContents(io, pack, nullptr);
    if (IsDamage(contents.code())) continue;
    TRY(contents);
    for (const journal::PackedRecord& record : contents->records) {
      note(StreamId(record.stream), Seq(record.seq), record.location);
    }
  }
  TRY(journal::ReplayJournals(io, {}, [&](const auto&, const auto& where, ByteView payload) {
    if (where.type != journal::FrameType::kRecord) return Status();
    Decoder in(payload);
    const StreamId owner(in.U32());
    const Seq seq(in.U64());
    if (in.ok()) note(owner, seq, where);
    return Status();
  }));
  return found;
}

}  // namespace memoirfs::volume
