#include <algorithm>

#include "fs/cli/commands.h"
#include "fs/cli/store_access.h"
#include "fs/daemon/mountpoint.h"
#include "fs/fuse/mountinfo.h"
#include "store/base/json.h"

namespace memoirfs::cli {
namespace {

void PrintHealth(const Json& status, const Output& output) {
  const bool read_only = status.value("read_only", false);
  const std::string reason = TextOf(status, "read_only_reason");
  if (read_only) output.Text(Colour::kRed, "read-only  ", reason);
  if (const std::string pending = TextOf(status, "purge_pending"); !pending.empty()) {
    output.Text(Colour::kYellow, "purge      ", "not finished: " + pending);
  }
  const auto corrupt = status.value("corrupt_objects", uint64_t{0});
  if (corrupt == 0) {
    output.Text("corrupt    nothing known; 'memoirfs verify' reads everything");
    return;
  }
  output.Text(Colour::kRed, "corrupt    ", std::to_string(corrupt) + " object(s)");
  for (const Json& object : status.value("corrupt", Json::array())) {
    output.Text("           " + TextOf(object, "digest") + "  " + TextOf(object, "why"));
  }
}

void PrintMounts(const Json& status, const Output& output) {
  std::vector<std::vector<std::string>> rows = {{"MOUNTPOINT", "AGENT", ""}};
  for (const Json& mount : status.at("mounts")) {
    const Json& agent = mount.at("agent");
    rows.push_back({TextOf(mount, "mountpoint"),
                    agent.is_string() ? agent.get<std::string>() : "(all)",
                    mount.value("read_only", false) ? "read-only" : ""});
  }
  if (rows.size() == 1) return;
  output.Text("");
  output.Table(rows);
}

void PrintAgents(const Json& status, const Output& output) {
  std::vector<std::vector<std::string>> rows = {{"AGENT", "RECORDS", "HEAD", "LAST CHANGE", ""}};
  for (const Json& agent : status.at("agents")) {
    rows.push_back({TextOf(agent, "name"), std::to_string(agent.at("seq").get<uint64_t>()),
                    TextOf(agent, "hash").substr(0, 16), TextOf(agent, "ts"),
                    agent.value("removed", false) ? "removed" : ""});
  }
  if (rows.size() == 1) return;
  output.Text("");
  output.Table(rows);
}

bool ListsMount(const Json& status, const std::string& mountpoint) {
  const Json& mounts = status.at("mounts");
  return std::any_of(mounts.begin(), mounts.end(),
                     [&](const Json& mount) { return TextOf(mount, "mountpoint") == mountpoint; });
}

// What a daemon that was killed leaves behind: each access fails until it is taken away. Of what
// the living one serves nothing is asked.
std::vector<std::string> DeadMountsOf(const std::string& store, const Json& status) {
  std::vector<std::string> dead;
  const auto mounts = fuse::ReadMountInfo();
  if (!mounts.ok()) return dead;
  for (const fuse::MountEntry& mount : *mounts) {
    if (mount.type != fuse::kFileSystemType || mount.source != store) continue;
    if (ListsMount(status, mount.mountpoint)) continue;
    if (daemon::IsDeadMount(mount.mountpoint)) dead.push_back(mount.mountpoint);
  }
  return dead;
}

void PrintDeadMounts(const Json& status, const Output& output) {
  for (const Json& mountpoint : status.value("dead_mounts", Json::array())) {
    output.Text(Colour::kRed, "dead       ",
                mountpoint.get<std::string>() +
                    ": its daemon is gone. 'memoirfs mount' puts a new one there, 'memoirfs "
                    "umount' takes it away");
  }
}

void Print(const Json& status, const std::string& store, const Output& output) {
  output.Text("store      " + store + "  (" + TextOf(status, "store_id") + ")");
  const bool served = status.at("pid").is_number();
  output.Text("daemon     " +
              (served ? "pid " + std::to_string(status["pid"].get<int>()) : "none; not mounted"));
  PrintDeadMounts(status, output);
  output.Text("anchored   " + TextOf(status, "anchored"));
  if (served) {
    output.Text("unsaved    " + HumanBytes(status.value("dirty_bytes", uint64_t{0})) + " in " +
                std::to_string(status.value("open_files", uint64_t{0})) + " open file(s)");
  }
  if (status.contains("space")) {
    output.Text("space      " + HumanBytes(status["space"].value("available_bytes", uint64_t{0})) +
                " available");
  }
  PrintHealth(status, output);
  PrintMounts(status, output);
  PrintAgents(status, output);
}

Result<Json> AskForStatus(const std::string& store, const std::string& agent) {
  daemon::Request request{.operation = daemon::Operation::kStatus};
  if (!agent.empty()) request.agent = agent;
  ASSIGN_OR_RETURN(const std::string answer, Ask(store, request, Access::kRead));
  ASSIGN_OR_RETURN(Json status, ParseJson(answer));
  // Nobody knows whose a dead mount was: one agent is not told of any.
  if (agent.empty()) status["dead_mounts"] = DeadMountsOf(store, status);
  return status;
}

int Run(const std::string& agent, const Invocation& invocation, const Output& output) {
  const Result<std::string> store = invocation.StorePath();
  if (!store.ok()) return output.Fail("status", store.status());
  const Result<Json> status = AskForStatus(*store, agent);
  if (!status.ok()) return output.Fail("status", status.status());
  output.Json(DumpJson(*status));
  if (!output.json()) Print(*status, *store, output);
  return kSuccess;
}

}  // namespace

void AddStatus(Command& root) {
  const auto agent = std::make_shared<std::string>();
  Command command = root.Add("status", "Show the store's state");
  command.Value({.name = "--agent", .help = "Only what this agent may see", .type = "NAME"},
                *agent);
  command.Runs([agent](const Invocation& i, const Output& o) { return Run(*agent, i, o); });
}

}  // namespace memoirfs::cli
