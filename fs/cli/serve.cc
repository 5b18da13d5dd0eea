#include "fs/cli/serve.h"

#include "fs/cli/store_access.h"
#include "fs/daemon/control_client.h"
#include "fs/daemon/mountpoint.h"
#include "fs/daemon/open_store.h"
#include "store/base/json.h"

namespace memoirfs::cli {

Result<daemon::MountRequest> MountOptions::ToRequest() const {
  daemon::MountRequest request;
  ASSIGN_OR_RETURN(request.mountpoint, daemon::ResolveMountpoint(mountpoint));
  if (!agent.empty()) request.agent = agent;
  request.read_only = read_only;
  request.allow_other = allow_other;
  return request;
}

void AddMountOptions(Command& command, MountOptions& options) {
  command.Value({.name = "MOUNTPOINT", .help = "An empty directory", .required = true},
                options.mountpoint);
  command.Value({.name = "--agent", .help = "Show only this agent's memory", .type = "NAME"},
                options.agent);
  command.Flag("--allow-other", "Let other users reach the mount", options.allow_other);
  command.Flag("--read-only", "Refuse every change", options.read_only);
}

daemon::DaemonOptions ForegroundOptions(const std::string& store,
                                        const daemon::MountRequest& request) {
  daemon::DaemonOptions options;
  options.store = store;
  options.log_to_file = false;
  options.read_only = request.read_only && !daemon::IsWritable(store);
  return options;
}

// A daemon without mounts is about to end: that is waited for. The store is not opened here: that
// would start threads, and this process is going to fork.
Status CheckFreeToServe(const std::string& store) {
  return Patiently([&]() -> Status {
    ASSIGN_OR_RETURN(const bool served, IsServed(store));
    if (!served) return {};
    const daemon::Request request{.operation = daemon::Operation::kStatus};
    ConsoleSink sink;
    ASSIGN_OR_RETURN(const std::string answer, daemon::AskDaemon(store, request, sink));
    ASSIGN_OR_RETURN(const Json status, ParseJson(answer));
    const bool ends = status.at("mounts").empty();
    return Status(ends ? Code::kLocked : Code::kBusy,
                  "a daemon serves this store already. 'memoirfs mount' lets it serve this place "
                  "too; or unmount all of its mounts first");
  });
}

Result<std::unique_ptr<daemon::Daemon>> StartPatiently(const daemon::DaemonOptions& options) {
  return Patiently([&] { return daemon::Daemon::Start(options); });
}

int Serve(const daemon::DaemonOptions& options, const daemon::MountRequest* first,
          daemon::ReadySignal ready) {
  auto started = StartPatiently(options);
  Status status = status_internal::AsStatus(started);
  if (status.ok() && first != nullptr) status = (*started)->Mount(*first);
  if (!status.ok()) {
    ready.Failed(status);
    return kFailure;
  }
  ready.Ready();
  return (*started)->Run().ok() ? kSuccess : kFailure;
}

}  // namespace memoirfs::cli
