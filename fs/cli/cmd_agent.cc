#include <unistd.h>

#include <iostream>

#include "fs/cli/commands.h"
#include "fs/cli/store_access.h"
#include "store/base/file_name.h"
#include "store/base/json.h"
#include "store/base/printable.h"

namespace memoirfs::cli {
namespace {

struct Options {
  std::string name;
  bool purge = false;
  bool yes = false;
};

Result<std::string> AskStore(const Invocation& invocation, const daemon::Request& request,
                             Access access) {
  ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
  return Ask(store, request, access);
}

int Add(const Options& options, const Invocation& invocation, const Output& output) {
  daemon::Request request{.operation = daemon::Operation::kAgentAdd};
  request.agent = options.name;
  if (const Status name = CheckAgentName(options.name); !name.ok()) {
    return output.Fail("agent add", name);
  }
  const Result<std::string> added = AskStore(invocation, request, Access::kWrite);
  if (!added.ok()) return output.Fail("agent add", added.status());
  output.Json(*added);
  output.Text("Added agent " + options.name);
  output.Text("Next: memoirfs mount MOUNTPOINT --agent " + options.name + invocation.StoreOption());
  return kSuccess;
}

int List(const Invocation& invocation, const Output& output) {
  const daemon::Request request{.operation = daemon::Operation::kAgentList};
  const Result<std::string> listed = AskStore(invocation, request, Access::kRead);
  if (!listed.ok()) return output.Fail("agent list", listed.status());
  output.Json(*listed);
  std::vector<std::vector<std::string>> rows = {{"AGENT", "RECORDS", "LAST CHANGE", ""}};
  const Json json = Json::parse(*listed);
  for (const Json& agent : json.at("agents")) {
    rows.push_back({agent.at("name"), std::to_string(agent.at("seq").get<uint64_t>()),
                    agent.at("ts"), agent.at("removed").get<bool>() ? "removed" : ""});
  }
  if (rows.size() == 1) {
    output.Text("No agents yet. Add one: memoirfs agent add NAME");
  } else {
    output.Table(rows);
  }
  return kSuccess;
}

// Deleting a history cannot be undone: it is asked for on a terminal, or said with --yes.
Status Confirm(const Options& options) {
  if (!options.purge || options.yes) return {};
  if (::isatty(STDIN_FILENO) != 1) {
    return Status(Code::kInvalidArgument,
                  "--purge deletes the history for good. Add --yes to say that it is meant");
  }
  std::cerr << "Delete agent " << Printable(options.name)
            << " with its whole history, for good? Type its name to confirm: " << std::flush;
  std::string typed;
  std::getline(std::cin, typed);
  return typed == options.name ? Status()
                               : Status(Code::kInterrupted, "not confirmed; nothing done");
}

int Remove(const Options& options, const Invocation& invocation, const Output& output) {
  if (const Status confirmed = Confirm(options); !confirmed.ok()) {
    return output.Fail("agent rm", confirmed);
  }
  daemon::Request request{.operation = daemon::Operation::kAgentRemove};
  request.agent = options.name;
  request.purge = options.purge;
  const Result<std::string> removed = AskStore(invocation, request, Access::kWrite);
  if (!removed.ok()) return output.Fail("agent rm", removed.status());
  output.Json(*removed);
  output.Text(options.purge
                  ? "Removed agent " + options.name + " and deleted its history"
                  : "Removed agent " + options.name + ". Its chain and history stay: 'memoirfs " +
                        "agent add " + options.name + "' brings it back, 'agent rm --purge " +
                        options.name + "' deletes them");
  return kSuccess;
}

}  // namespace

void AddAgent(Command& root) {
  Command command = root.Add("agent", "Add, list and remove agents");
  command.RequireCommand();
  const auto options = std::make_shared<Options>();

  Command add = command.Add("add", "Add an agent, or bring a removed one back");
  add.Value({.name = "NAME", .help = "1 to 64 letters, digits, '.', '_', '-'", .required = true},
            options->name);
  add.Runs([options](const Invocation& i, const Output& o) { return Add(*options, i, o); });

  Command list = command.Add("list", "List the agents of the store");
  list.Runs(List);

  Command remove = command.Add("rm", "Remove an agent; chain and history stay");
  remove.Value({.name = "NAME", .help = "The agent", .required = true}, options->name);
  remove.Flag("--purge", "Delete chain and history too", options->purge);
  remove.Flag("--yes", "Do not ask before --purge", options->yes);
  remove.Runs([options](const Invocation& i, const Output& o) { return Remove(*options, i, o); });
}

}  // namespace memoirfs::cli
