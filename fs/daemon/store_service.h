#pragma once

// What the commands ask of a store, daemon or not: the daemon answers with it over the socket, and
// a command that finds no daemon answers itself.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fs/daemon/control_socket.h"
#include "fs/daemon/open_store.h"
#include "fs/daemon/request.h"

namespace memoirfs::daemon {

struct MountFacts {
  std::string mountpoint;
  std::optional<std::string> agent;  // all of them without it
  bool read_only = false;
  bool allow_other = false;
  std::string metrics;  // a JSON object's text, or empty
};

struct ServingFacts {
  bool serving = false;  // a daemon
  std::vector<MountFacts> mounts;
  uint64_t dirty_bytes = 0;
  uint64_t open_files = 0;
};

// What only the daemon knows and can do. The defaults are those of a command without a daemon.
class ServingHooks {
 public:
  virtual ~ServingHooks() = default;
  virtual ServingFacts Facts() const { return {}; }
  virtual Status CommitDirty() { return {}; }
  // An agent of this name came or went.
  virtual void AgentChanged(const std::string& /*name*/) {}
  // Long work is to end soon.
  virtual bool Ending() const { return false; }
};

// Thread-safe.
class StoreService {
 public:
  StoreService(OpenedStore& store, ServingHooks& hooks) : store_(store), hooks_(hooks) {}

  // The result is a JSON object's text; what there may be any number of (records of a log, problems
  // found by verify) comes before it, as items. kNotSupported for what only a daemon does.
  Result<std::string> Handle(const Request& request, const Peer& peer, ReplySink& sink);

  // The facts as a JSON object; with `agent` only what that agent may see: no other's name, mount
  // or chain.
  std::string StatusJson(const std::optional<std::string>& agent) const;

 private:
  Result<std::string> Verify(const Request& request, ReplySink& sink);
  Result<std::string> ShowLog(const Request& request, ReplySink& sink);
  Result<std::string> Cat(const Request& request, ReplySink& sink);
  Result<std::string> AddAgent(const Request& request, const Peer& peer);
  Result<std::string> ListAgents() const;
  Result<std::string> RemoveAgent(const Request& request);

  OpenedStore& store_;
  ServingHooks& hooks_;
};

// "memory/notes.md", "/notes.md" and "notes.md" all mean the file notes.md of an agent's memory.
std::string PathWithinMemory(std::string_view path);

}  // namespace memoirfs::daemon
