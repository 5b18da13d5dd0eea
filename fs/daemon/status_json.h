#pragma once

#include <optional>
#include <string>

#include "fs/daemon/store_service.h"

namespace memoirfs::daemon {

// All that status says, before it is text.
struct StatusFacts {
  std::string store;
  int32_t pid = 0;  // of the daemon; 0: none
  ServingFacts serving;
  volume::VolumeFacts volume;
  std::string rollback_reason;
  bool anchored = false;
  std::optional<SpaceFacts> space;
};

// A JSON object. With `agent`: only that agent's chain and mounts, and of corrupt objects only the
// number, because a digest says something about another's file.
std::string StatusToJson(const StatusFacts& facts, const std::optional<std::string>& agent);

std::string AgentToJson(const volume::AgentFacts& agent);

}  // namespace memoirfs::daemon
