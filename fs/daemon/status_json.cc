#include "fs/daemon/status_json.h"

#include "store/base/json.h"

namespace memoirfs::daemon {
namespace {

using volume::AgentFacts;
using volume::VolumeFacts;

Json AgentJson(const AgentFacts& agent) {
  return {{"name", agent.name},
          {"stream", agent.stream.value},
          {"removed", agent.removed},
          {"seq", agent.head.seq.value},
          {"hash", agent.head.hash.ToHex()},
          {"ts", agent.head.seq.value == 0 ? "" : FormatRfc3339(agent.head.ts)},
          {"read_only_reason", agent.read_only_reason},
          {"chain", agent.chain_directory}};
}

Json LsnJson(const journal::Lsn& lsn) { return {{"journal", lsn.journal}, {"offset", lsn.offset}}; }

Json MountJson(const MountFacts& mount) {
  Json json = {{"mountpoint", mount.mountpoint},
               {"agent", mount.agent ? Json(*mount.agent) : Json(nullptr)},
               {"read_only", mount.read_only},
               {"allow_other", mount.allow_other}};
  if (!mount.metrics.empty()) {
    const Result<Json> metrics = ParseJson(mount.metrics);
    if (metrics.ok()) json["requests"] = metrics.value();
  }
  return json;
}

Json AgentsJson(const VolumeFacts& facts, const std::optional<std::string>& only) {
  Json agents = Json::array();
  for (const AgentFacts& agent : facts.agents) {
    if (!only || agent.name == *only) agents.push_back(AgentJson(agent));
  }
  return agents;
}

Json MountsJson(const std::vector<MountFacts>& mounts, const std::optional<std::string>& only) {
  Json list = Json::array();
  for (const MountFacts& mount : mounts) {
    if (!only || mount.agent == only) list.push_back(MountJson(mount));
  }
  return list;
}

Json CorruptJson(const VolumeFacts& facts) {
  Json list = Json::array();
  for (const VolumeFacts::Corrupt& corrupt : facts.corrupt) {
    list.push_back({{"digest", corrupt.digest.ToHex()}, {"why", corrupt.why}});
  }
  return list;
}

Json SpaceJson(const SpaceFacts& space) {
  return {{"total_bytes", space.block_size * space.total_blocks},
          {"available_bytes", space.block_size * space.available_blocks}};
}

// What concerns the store as a whole and no agent in particular.
void AddStoreFacts(const StatusFacts& facts, Json& json) {
  json["store"] = facts.store;
  json["corrupt"] = CorruptJson(facts.volume);
  json["purge_pending"] = facts.volume.purge_pending;
  json["overlay_bytes"] = facts.volume.overlay_bytes;
  json["pending_creates"] = facts.volume.pending_creates;
  json["dirty_bytes"] = facts.serving.dirty_bytes;
  json["open_files"] = facts.serving.open_files;
}

// One agent learns no more than that, where the reason is another's.
std::string ReadOnlyReason(const StatusFacts& facts, const std::optional<std::string>& only) {
  if (!facts.rollback_reason.empty()) {
    return only ? "the store is not what it was known to be: whoever runs it can see more"
                : facts.rollback_reason;
  }
  if (!facts.volume.read_only_reason.empty()) return facts.volume.read_only_reason;
  for (const AgentFacts& agent : facts.volume.agents) {
    if (!agent.read_only_reason.empty() && (!only || agent.name == *only)) {
      return agent.read_only_reason;
    }
  }
  return "";
}

}  // namespace

std::string AgentToJson(const AgentFacts& agent) { return DumpJson(AgentJson(agent)); }

std::string StatusToJson(const StatusFacts& facts, const std::optional<std::string>& agent) {
  const VolumeFacts& volume = facts.volume;
  const std::string reason = ReadOnlyReason(facts, agent);
  // A command that only looks opens a store read-only: that says nothing about the store.
  const bool read_only = volume.read_only && (facts.serving.serving || !reason.empty());
  Json json = {{"store_id", volume.store_id},
               {"session_id", volume.session_id},
               {"pid", facts.pid == 0 ? Json(nullptr) : Json(facts.pid)},
               {"read_only", read_only},
               {"read_only_reason", reason},
               {"anchored", facts.anchored ? "same machine" : "none"},
               {"end", LsnJson(volume.end)},
               {"durable", LsnJson(volume.durable)},
               {"barriers", volume.barriers},
               {"agents", AgentsJson(volume, agent)},
               {"mounts", MountsJson(facts.serving.mounts, agent)},
               {"corrupt_objects", volume.corrupt.size()}};
  if (facts.space) json["space"] = SpaceJson(*facts.space);
  if (!agent) AddStoreFacts(facts, json);
  return DumpJson(json);
}

}  // namespace memoirfs::daemon
