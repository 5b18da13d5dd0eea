#include "fs/cli/commands.h"
#include "fs/cli/serve.h"
#include "fs/cli/store_access.h"
#include "fs/daemon/mountpoint.h"
#include "fs/daemon/open_store.h"
#include "fs/daemon/service_manager.h"
#include "fs/daemon/supervisor.h"

namespace memoirfs::cli {
namespace {

Status SuperviseMount(const std::string& store, const daemon::MountRequest& request,
                      const Output& output) {
  TRY(daemon::CheckStoreExists(store));
  TRY(daemon::PrepareMountpoint(request.mountpoint, store));
  TRY(CheckFreeToServe(store));
  const daemon::DaemonOptions options = ForegroundOptions(store, request);
  const auto serve = [&](daemon::ReadySignal ready) {
    return Serve(options, &request, std::move(ready));
  };
  const auto on_ready = [&](uint64_t deaths) {
    output.Text(deaths == 0 ? "Mounted at " + request.mountpoint + "; Ctrl-C unmounts"
                            : "Mounted again at " + request.mountpoint);
    std::fflush(stdout);
    if (deaths == 0) daemon::TellServiceManager("READY=1");
  };
  return daemon::Supervise(serve, on_ready);
}

int Run(const MountOptions& options, const Invocation& invocation, const Output& output) {
  const auto supervise = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
    ASSIGN_OR_RETURN(const daemon::MountRequest request, options.ToRequest());
    return SuperviseMount(store, request, output);
  };
  const Status status = supervise();
  return status.ok() ? kSuccess : output.Fail("supervise", status);
}

}  // namespace

void AddSupervise(Command& root) {
  const auto options = std::make_shared<MountOptions>();
  Command command = root.Add(
      "supervise", "Mount, stay in the foreground, and mount again whenever the daemon dies");
  AddMountOptions(command, *options);
  command.Runs([options](const Invocation& i, const Output& o) { return Run(*options, i, o); });
}

}  // namespace memoirfs::cli
