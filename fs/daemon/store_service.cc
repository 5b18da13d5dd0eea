#include "fs/daemon/store_service.h"

#include <unistd.h>

#include <algorithm>
#include <deque>

#include "fs/daemon/status_json.h"
#include "store/base/file_name.h"
#include "store/base/json.h"
#include "store/cas/chunk_tree.h"

namespace memoirfs::daemon {
namespace {

using volume::AgentFacts;
using volume::VerifyProblem;
using volume::VerifyProgress;
using volume::VerifyReport;

// Passes progress on at most ten times a second; false when nobody is there to hear of the result.
class ProgressThrottle {
 public:
  ProgressThrottle(ReplySink& sink, const ServingHooks& hooks) : sink_(sink), hooks_(hooks) {}

  bool operator()(const VerifyProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    const bool finished = progress.done == progress.total;
    if (hooks_.Ending()) return false;
    if (!finished && now < next_) return true;
    next_ = now + std::chrono::milliseconds(100);
    return sink_.Progress(progress).ok();
  }

 private:
  ReplySink& sink_;
  const ServingHooks& hooks_;
  std::chrono::steady_clock::time_point next_{};
};

Json ProblemJson(const VerifyProblem& problem) {
  return {{"what", problem.what},
          {"where", problem.where},
          {"expected", problem.expected},
          {"found", problem.found}};
}

// Without the problems.
Json ReportJson(const VerifyReport& report, volume::VerifyLevel level) {
  const bool empty = report.nothing_to_verify();
  return {{"level", LevelName(level)},
          {"streams", report.streams},
          {"records", report.records},
          {"objects", report.objects},
          {"bytes", report.bytes},
          {"packs", report.packs},
          {"verdict", !report.problems.empty() ? "broken"
                      : empty                  ? "empty"
                                               : "intact"}};
}

// Keeps the newest records, up to a number, of one chain or several.
class NewestRecords {
 public:
  explicit NewestRecords(uint64_t limit) : limit_(limit) {}

  void Add(Nanos ts, std::string_view line) {
    records_.emplace_back(ts, line);
    if (limit_ != 0 && records_.size() > limit_) records_.pop_front();
  }
  void Merge(NewestRecords other) {
    std::move(other.records_.begin(), other.records_.end(), std::back_inserter(records_));
    std::stable_sort(records_.begin(), records_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    while (limit_ != 0 && records_.size() > limit_) records_.pop_front();
  }
  const std::deque<std::pair<Nanos, std::string>>& records() const { return records_; }

 private:
  const uint64_t limit_;
  std::deque<std::pair<Nanos, std::string>> records_;
};

bool IsAtOrBelow(const std::string& place, const std::string& path) {
  return place == path || place.starts_with(path + "/");
}

// A rename concerns the place that it moved away from as well.
bool Concerns(const chain::Change& change, const std::string& path) {
  if (path.empty() || IsAtOrBelow(change.path, path)) return true;
  return change.op == chain::Op::kRename && IsAtOrBelow(chain::RenameSource(change), path);
}

Result<NewestRecords> CollectLog(const volume::Volume& volume, const AgentFacts& agent,
                                 const Request& request) {
  const std::string path = PathWithinMemory(request.path);
  NewestRecords newest(request.limit);
  TRY(volume.ForEachRecord(agent.stream, Seq(request.since_seq + 1),
                           [&](const chain::ParsedRecord& record, std::string_view line) {
                             if (Concerns(record.change, path)) newest.Add(record.ts, line);
                             return Status();
                           }));
  return newest;
}

// An agent by name, a removed one too: its history stays.
Result<AgentFacts> FindWithHistory(const volume::Volume& volume, const std::string& name) {
  for (AgentFacts& agent : volume.ListAgents()) {
    if (agent.name == name) return std::move(agent);
  }
  return Status(Code::kNotFound,
                "there is no agent '" + name + "' in this store. See: memoirfs agent list");
}

Result<std::string> NameIn(const Request& request) {
  if (!request.agent) return Status(Code::kInvalidArgument, "an agent's name is missing");
  return *request.agent;
}

}  // namespace

std::string PathWithinMemory(std::string_view path) {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  constexpr std::string_view kMemory = "memory/";
  if (path.substr(0, kMemory.size()) == kMemory) path.remove_prefix(kMemory.size());
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return std::string(path);
}

Result<std::string> StoreService::Handle(const Request& request, const Peer& peer,
                                         ReplySink& sink) {
  switch (request.operation) {
    case Operation::kStatus:
      if (request.agent) TRY(FindWithHistory(store_.volume(), *request.agent));
      return StatusJson(request.agent);
    case Operation::kVerify:
      return Verify(request, sink);
    case Operation::kLog:
      return ShowLog(request, sink);
    case Operation::kCat:
      return Cat(request, sink);
    case Operation::kAgentAdd:
      return AddAgent(request, peer);
    case Operation::kAgentList:
      return ListAgents();
    case Operation::kAgentRemove:
      return RemoveAgent(request);
    case Operation::kSync:
      TRY(hooks_.CommitDirty());
      TRY(store_.volume().Checkpoint());
      TRY(store_.UpdateAnchors());
      return std::string("{}");
    case Operation::kMount:
    case Operation::kUmount:
    case Operation::kStop:
    case Operation::kFsck:
      break;
  }
  return Status(Code::kNotSupported,
                std::string(OperationName(request.operation)) + " is not possible here");
}

std::string StoreService::StatusJson(const std::optional<std::string>& agent) const {
  StatusFacts facts;
  facts.store = store_.path();
  facts.serving = hooks_.Facts();
  facts.pid = facts.serving.serving ? ::getpid() : 0;
  facts.volume = store_.volume().Facts();
  facts.rollback_reason = store_.rollback_reason();
  facts.anchored = store_.anchored();
  if (Result<SpaceFacts> space = store_.volume().Space(); space.ok()) facts.space = *space;
  return StatusToJson(facts, agent);
}

Result<std::string> StoreService::Verify(const Request& request, ReplySink& sink) {
  if (request.agent) TRY(FindWithHistory(store_.volume(), *request.agent));
  ProgressThrottle progress(sink, hooks_);
  ASSIGN_OR_RETURN(VerifyReport report,
                   volume::VerifyVolume(store_.volume(), {request.agent, request.level}, progress));
  for (const VerifyProblem& problem : store_.rollback()) {
    if (!request.agent || problem.agent == request.agent) report.problems.push_back(problem);
  }
  // One by one: there may be more of them than a line holds.
  for (const VerifyProblem& problem : report.problems) {
    TRY(sink.Item(DumpJson(ProblemJson(problem))));
  }
  return DumpJson(ReportJson(report, request.level));
}

Result<std::string> StoreService::ShowLog(const Request& request, ReplySink& sink) {
  const volume::Volume& volume = store_.volume();
  std::vector<AgentFacts> agents;
  if (request.agent) {
    ASSIGN_OR_RETURN(AgentFacts agent, FindWithHistory(volume, *request.agent));
    agents.push_back(std::move(agent));
  } else {
    agents = volume.ListAgents();
  }
  // A chain shows what is durable; the newest saves are to be seen in it.
  if (!store_.read_only()) TRY(store_.volume().Sync());
  NewestRecords newest(request.limit);
  for (const AgentFacts& agent : agents) {
    ASSIGN_OR_RETURN(NewestRecords own, CollectLog(volume, agent, request));
    newest.Merge(std::move(own));
  }
  for (const auto& record : newest.records())
    TRY(sink.Item(DumpJson(Json{{"line", record.second}})));
  return DumpJson(Json{{"records", newest.records().size()}});
}

Result<std::string> StoreService::Cat(const Request& request, ReplySink& sink) {
  volume::Volume& volume = store_.volume();
  ASSIGN_OR_RETURN(const std::string name, NameIn(request));
  ASSIGN_OR_RETURN(const AgentFacts agent, FindWithHistory(volume, name));
  const std::string path = PathWithinMemory(request.path);
  std::optional<Seq> seq;
  if (request.seq) seq = Seq(*request.seq);
  const Result<volume::Inode> inode = volume.FindVersion(agent.stream, path, seq);
  if (!inode.ok()) return inode.status().WithContext(name + ":" + path);
  if (inode->attributes.IsDirectory()) {
    return Status(Code::kIsDirectory, name + ":" + path + " is a directory");
  }
  const ContentId& content = inode->content;
  for (uint64_t offset = 0; offset < content.size; offset += cas::kChunkSize) {
    const Result<Bytes> piece =
        cas::ReadContent(volume.objects(), content, offset, cas::kChunkSize);
    if (!piece.ok()) return piece.status().WithContext(name + ":" + path);
    TRY(sink.Data(piece.value()));
  }
  return DumpJson(
      Json{{"bytes", content.size}, {"digest", content.digest.ToHex()}, {"seq", inode->seq.value}});
}

Result<std::string> StoreService::AddAgent(const Request& request, const Peer& peer) {
  ASSIGN_OR_RETURN(const std::string name, NameIn(request));
  TRY(CheckAgentName(name));
  const Result<AgentFacts> added = store_.volume().AddAgent(name, peer.uid, peer.gid);
  if (added.code() == Code::kExists) {
    return Status(Code::kExists, "agent '" + name + "' exists already");
  }
  TRY(added);
  hooks_.AgentChanged(name);
  TRY(store_.UpdateAnchors());
  return AgentToJson(added.value());
}

Result<std::string> StoreService::ListAgents() const {
  Json agents = Json::array();
  for (const AgentFacts& agent : store_.volume().ListAgents()) {
    ASSIGN_OR_RETURN(Json json, ParseJson(AgentToJson(agent)));
    agents.push_back(std::move(json));
  }
  return DumpJson(Json{{"agents", agents}});
}

Result<std::string> StoreService::RemoveAgent(const Request& request) {
  ASSIGN_OR_RETURN(const std::string name, NameIn(request));
  ASSIGN_OR_RETURN(const AgentFacts agent, FindWithHistory(store_.volume(), name));
  if (agent.removed && !request.purge) {
    return Status(Code::kNotFound, "agent '" + name +
                                       "' is removed already; its history is kept. Add --purge "
                                       "to delete that too");
  }
  // Purging rewrites what every agent's files lie in: nothing may be changed meanwhile.
  if (request.purge && hooks_.Facts().serving) {
    return Status(Code::kBusy,
                  "the store is mounted, and a purge rewrites it. Unmount everything "
                  "first ('memoirfs status' names the mounts)");
  }
  for (const MountFacts& mount : hooks_.Facts().mounts) {
    if (mount.agent != name) continue;
    return Status(Code::kBusy,
                  "agent '" + name + "' is mounted at " + mount.mountpoint + ". Unmount it first");
  }
  TRY(hooks_.CommitDirty());
  TRY(request.purge ? store_.PurgeAgent(agent) : store_.volume().RemoveAgent(name, false));
  hooks_.AgentChanged(name);
  TRY(store_.UpdateAnchors());
  return DumpJson(Json{{"agent", name}, {"history", request.purge ? "deleted" : "kept"}});
}

}  // namespace memoirfs::daemon
