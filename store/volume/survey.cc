#include "store/volume/survey.h"

#include "store/base/coding.h"
#include "store/chain/segment.h"
#include "store/journal/pack.h"
#include "store/journal/replay.h"

namespace memoirfs::volume {
namespace {

using journal::FrameHeader;
using journal::FrameType;
using journal::Location;
using journal::PackId;

class Survey {
 public:
  Survey(FileIo& io, const std::map<StreamId, Seq>& wanted) : io_(io), wanted_(wanted) {}

  Result<std::map<StreamId, SurveyedChain>> Run() {
    for (const auto& [stream, seq] : wanted_) TRY(LookIntoSegments(stream, seq));
    if (!IsDone()) TRY(LookIntoJournals());
    if (!IsDone()) TRY(LookIntoPacks());
    return std::move(chains_);
  }

 private:
  bool IsDone() const {
    for (const auto& [stream, chain] : chains_) {
      if (!chain.hash) return false;
    }
    return true;
  }

  Status LookIntoSegments(StreamId stream, Seq seq) {
    SurveyedChain& chain = chains_[stream];
    const Result<chain::ChainEnd> end = chain::FindEnd(io_, stream);
    // A damaged chain file does not say that the record is lost.
    if (IsDamage(end.code())) return {};
    TRY(end);
    Note(stream, end->last_line);
    if (chain.hash || chain.last.seq < seq) return {};
    const Result<std::string> line = chain::FindLine(io_, stream, seq);
    if (IsDamage(line.code())) return {};
    TRY(line);
    Note(stream, *line);
    return {};
  }

  Status LookIntoJournals() {
    return status_internal::AsStatus(journal::ReplayJournals(
        io_, {}, [&](const FrameHeader&, const Location& where, ByteView payload) {
          if (where.type == FrameType::kRecord) NoteFrame(payload);
          return Status();
        }));
  }

  // The newest first: what segments lack was written last.
  Status LookIntoPacks() {
    ASSIGN_OR_RETURN(const auto packs, journal::ListPacks(io_));
    journal::PackReader reader(io_);
    for (auto pack = packs.rbegin(); pack != packs.rend() && !IsDone(); ++pack) {
      if (pack->bulk) continue;
      const auto contents = journal::ReadPackContents(io_, *pack, nullptr);
      if (IsDamage(contents.code())) continue;
      TRY(contents);
      for (const journal::PackedRecord& record : contents->records) {
        if (chains_.count(StreamId(record.stream)) == 0) continue;
        const Result<Bytes> payload = reader.ReadPayload(record.location);
        if (IsDamage(payload.code())) continue;
        TRY(payload);
        NoteFrame(*payload);
      }
    }
    return {};
  }

  void NoteFrame(ByteView payload) {
    Decoder in(payload);
    const StreamId stream(in.U32());
    in.U64();
    if (in.ok() && chains_.count(stream) != 0) Note(stream, in.rest());
  }

  void Note(StreamId stream, std::string_view line) {
    const auto record = chain::ParseRecord(line);
    if (!record.ok() || record->stream != stream) return;
    SurveyedChain& chain = chains_[stream];
    if (record->seq > chain.last.seq) chain.last = {record->seq, record->hash, record->ts};
    if (record->seq == wanted_.at(stream)) chain.hash = record->hash;
  }

  FileIo& io_;
  const std::map<StreamId, Seq>& wanted_;
  std::map<StreamId, SurveyedChain> chains_;
};

}  // namespace

Result<std::map<StreamId, SurveyedChain>> SurveyChains(FileIo& io,
                                                       const std::map<StreamId, Seq>& wanted) {
  return Survey(io, wanted).Run();
}

}  // namespace memoirfs::volume
