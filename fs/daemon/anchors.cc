#include "fs/daemon/anchors.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "store/base/clock.h"
#include "store/base/file_io.h"
#include "store/base/json.h"
#include "store/volume/purge_plan.h"
#include "store/volume/survey.h"

namespace memoirfs::daemon {
namespace {

constexpr char kFileName[] = "heads.json";
constexpr char kFindingsName[] = "rollback.ndjson";

using volume::AgentFacts;
using volume::VerifyProblem;

std::string Describe(Seq seq, const Digest& hash) {
  return "record " + std::to_string(seq.value) + " with hash " + hash.ToHex();
}

VerifyProblem Problem(const Anchor& anchor, std::string found) {
  return {"anchor", "chain of agent " + anchor.agent, Describe(anchor.seq, anchor.hash),
          std::move(found), anchor.agent};
}

// The hash of one durable record; nullopt when the chain has no such record.
Result<std::optional<Digest>> HashAt(const volume::Volume& volume, StreamId stream, Seq seq) {
  std::optional<Digest> hash;
  const Status enough(Code::kInterrupted, "found");
  const Status status = volume.ForEachRecord(
      stream, seq, [&](const chain::ParsedRecord& record, std::string_view) -> Status {
        if (record.seq == seq) hash = record.hash;
        return enough;
      });
  if (!status.ok() && status.code() != enough.code()) return status;
  return hash;
}

// What a chain says of its anchor. It is no longer there when `chain` has no record at all.
std::optional<VerifyProblem> Compare(const Anchor& anchor, const volume::SurveyedChain& chain) {
  if (chain.last.seq == Seq()) {
    if (anchor.purging) return std::nullopt;
    return Problem(anchor, "no such chain");
  }
  if (chain.hash == anchor.hash) return std::nullopt;
  if (chain.hash) {
    return Problem(anchor, "another record in its place: " + Describe(anchor.seq, *chain.hash));
  }
  const std::string last = Describe(chain.last.seq, chain.last.hash);
  return Problem(anchor, chain.last.seq < anchor.seq
                             ? "the chain ends earlier, with " + last
                             : "no such record in the chain, which ends with " + last);
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
  const bool purging = json.value("purging", Json(false)) == Json(true);
  return std::pair(
      StreamId(stream.get<uint32_t>()),
      Anchor{json["agent"].get<std::string>(), Seq(seq.get<uint64_t>()), hash, purging});
}

}  // namespace

std::string EncodeAnchors(const AnchorSet& anchors) {
  Json heads = Json::array();
  for (const auto& [stream, anchor] : anchors) {
    heads.push_back({{"stream", stream.value},
                     {"agent", anchor.agent},
                     {"seq", anchor.seq.value},
                     {"hash", anchor.hash.ToHex()}});
    if (anchor.purging) heads.back()["purging"] = true;
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
  const std::vector<AgentFacts> agents = volume.ListAgents();
  for (const auto& [stream, anchor] : known_) {
    volume::SurveyedChain chain;
    const auto agent =
        std::find_if(agents.begin(), agents.end(),
                     [&, id = stream](const AgentFacts& facts) { return facts.stream == id; });
    if (agent != agents.end()) chain.last = agent->head;
    if (chain.last.seq == anchor.seq) chain.hash = chain.last.hash;
    if (chain.last.seq > anchor.seq) {
      ASSIGN_OR_RETURN(chain.hash, HashAt(volume, stream, anchor.seq));
    }
    if (auto problem = Compare(anchor, chain)) problems.push_back(*std::move(problem));
  }
  return problems;
}

Result<std::vector<VerifyProblem>> Anchors::CheckOnDisk(FileIo& store) const {
  // A purge that was decided may have begun: then there is a part of a chain, and nothing to see.
  ASSIGN_OR_RETURN(const auto purge, volume::ReadPurgePlan(store));
  std::map<StreamId, Seq> wanted;
  for (const auto& [stream, anchor] : known_) {
    if (anchor.purging && purge && purge->stream == stream) continue;
    wanted.emplace(stream, anchor.seq);
  }
  ASSIGN_OR_RETURN(const auto chains, volume::SurveyChains(store, wanted));
  std::vector<VerifyProblem> problems;
  for (const auto& [stream, chain] : chains) {
    if (auto problem = Compare(known_.at(stream), chain)) problems.push_back(*std::move(problem));
  }
  return problems;
}

Status Anchors::KeepFindings(const std::vector<VerifyProblem>& problems, Nanos when) const {
  Json list = Json::array();
  for (const VerifyProblem& problem : problems) {
    list.push_back(
        {{"where", problem.where}, {"expected", problem.expected}, {"found", problem.found}});
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<FileIo> io, OpenRealIo(directory_));
  const Result<Bytes> before = ReadWholeFile(*io, kFindingsName);
  if (!before.ok() && before.code() != Code::kNotFound) return before.status();
  const Bytes kept = before.ok() ? *before : Bytes();
  // The same again, by each command that meets it, says nothing new.
  const std::string tail = "\"problems\":" + list.dump() + "}\n";
  if (kept.ends_with(tail)) return {};
  return WriteFileAtomically(*io, kFindingsName,
                             kept + "{\"at\":\"" + FormatRfc3339(when) + "\"," + tail);
}

Status Anchors::NotePurge(StreamId stream) {
  const auto anchor = known_.find(stream);
  if (anchor == known_.end()) return {};
  anchor->second.purging = true;
  return Save();
}

Status Anchors::Update(volume::Volume& volume) {
  AnchorSet heads;
  for (const AgentFacts& agent : volume.ListAgents()) {
    heads[agent.stream] = Anchor{agent.name, agent.head.seq, agent.head.hash, false};
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
