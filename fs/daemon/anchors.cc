#include "fs/daemon/anchors.h"

#include <algorithm>
#include <limits>

#include "store/base/file_io.h"
#include "store/base/json.h"

namespace memoirfs::daemon {
namespace {

constexpr char kFileName[] = "heads.json";

using volume::AgentFacts;
using volume::VerifyProblem;

std::string Describe(Seq seq, const Digest& hash) {
  return "record " + std::to_string(seq.value) + " with hash " + hash.ToHex();
}

VerifyProblem Problem(const Anchor& anchor, std::string found) {
  return {"anchor", "chain of agent " + anchor.agent, Describe(anchor.seq, anchor.hash),
          std::move(found), anchor.agent};
}

// The hash of one durable record; zeros when the chain has no such record.
Result<Digest> HashAt(const volume::Volume& volume, StreamId stream, Seq seq) {
  Digest hash;
  const Status enough(Code::kInterrupted, "found");
  const Status status = volume.ForEachRecord(
      stream, seq, [&](const chain::ParsedRecord& record, std::string_view) -> Status {
        if (record.seq == seq) hash = record.hash;
        return enough;
      });
  if (!status.ok() && status.code() != enough.code()) return status;
  return hash;
}

Result<std::optional<VerifyProblem>> CheckOne(const volume::Volume& volume, StreamId stream,
                                              const Anchor& anchor,
                                              const std::vector<AgentFacts>& agents) {
  const auto agent = std::find_if(agents.begin(), agents.end(),
                                  [&](const AgentFacts& facts) { return facts.stream == stream; });
  using Found = std::optional<VerifyProblem>;
  if (agent == agents.end()) return Found(Problem(anchor, "no such chain"));
  const chain::Head& head = agent->head;
  if (head.seq < anchor.seq) {
    return Found(Problem(anchor, "the chain ends earlier, with " + Describe(head.seq, head.hash)));
  }
  Digest hash = head.hash;
  if (head.seq > anchor.seq) {
    ASSIGN_OR_RETURN(hash, HashAt(volume, stream, anchor.seq));
  }
  if (hash == anchor.hash) return Found();
  return Found(Problem(anchor, "another record in its place: " + Describe(anchor.seq, hash)));
}

Result<std::pair<StreamId, Anchor>> DecodeOne(const Json& json) {
  const Status wrong(Code::kCorrupt, "an entry is not a chain's head");
  if (!json.is_object() || !json.contains("stream") || !json.contains("agent") ||
      !json.contains("seq") || !json.contains("hash")) {
    return wrong;
  }
  const Json& stream = json["stream"];
  const Json& seq = json["seq"];
  if (!stream.is_number_unsigned() || !seq.is_number_unsigned() || !json["agent"].is_string() ||
      !json["hash"].is_string() || stream.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    return wrong;
  }
  ASSIGN_OR_RETURN(const Digest hash, Digest::FromHex(json["hash"].get<std::string>()));
  return std::pair(StreamId(stream.get<uint32_t>()),
                   Anchor{json["agent"].get<std::string>(), Seq(seq.get<uint64_t>()), hash});
}

}  // namespace

std::string EncodeAnchors(const AnchorSet& anchors) {
  Json heads = Json::array();
  for (const auto& [stream, anchor] : anchors) {
    heads.push_back({{"stream", stream.value},
                     {"agent", anchor.agent},
                     {"seq", anchor.seq.value},
                     {"hash", anchor.hash.ToHex()}});
  }
  return Json{{"heads", heads}}.dump(2) + "\n";
}

Result<AnchorSet> DecodeAnchors(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  if (!json.is_object() || !json.contains("heads") || !json["heads"].is_array()) {
    return Status(Code::kCorrupt, "not a list of heads");
  }
  AnchorSet anchors;
  for (const Json& entry : json["heads"]) {
    ASSIGN_OR_RETURN(auto decoded, DecodeOne(entry));
    anchors.insert(std::move(decoded));
  }
  return anchors;
}

Result<Anchors> Anchors::Load(const std::string& state_directory) {
  Anchors anchors(state_directory);
  ASSIGN_OR_RETURN(const std::unique_ptr<FileIo> io, OpenRealIo(state_directory));
  const Result<Bytes> text = ReadWholeFile(*io, kFileName);
  if (text.code() == Code::kNotFound) return anchors;
  TRY(text);
  Result<AnchorSet> known = DecodeAnchors(text.value());
  if (!known.ok()) {
    return Status(Code::kCorrupt, "the known heads in " + anchors.path() + " are damaged (" +
                                      known.status().ToString() +
                                      "). Move the file away to go on without them");
  }
  anchors.known_ = std::move(known).value();
  return anchors;
}

Result<std::vector<VerifyProblem>> Anchors::Check(const volume::Volume& volume) const {
  std::vector<VerifyProblem> problems;
  if (known_.empty()) return problems;
  const std::vector<AgentFacts> agents = volume.ListAgents();
  for (const auto& [stream, anchor] : known_) {
    ASSIGN_OR_RETURN(auto problem, CheckOne(volume, stream, anchor, agents));
    if (problem) problems.push_back(std::move(*problem));
  }
  return problems;
}

Status Anchors::Update(volume::Volume& volume) {
  AnchorSet heads;
  for (const AgentFacts& agent : volume.ListAgents()) {
    heads[agent.stream] = Anchor{agent.name, agent.head.seq, agent.head.hash};
  }
  if (heads == known_) return {};
  // Only what is durable may be vouched for: a power cut would make an honest store look older.
  TRY(volume.Sync());
  known_ = std::move(heads);
  return Save();
}

std::string Anchors::path() const { return directory_ + "/" + kFileName; }

Status Anchors::Save() const {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileIo> io, OpenRealIo(directory_));
  return WriteFileAtomically(*io, kFileName, EncodeAnchors(known_));
}

}  // namespace memoirfs::daemon
