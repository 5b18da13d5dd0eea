#include <sys/stat.h>

#include "fs/cli/commands.h"
#include "fs/cli/store_access.h"
#include "fs/daemon/control_client.h"
#include "fs/daemon/daemon.h"
#include "fs/daemon/daemonize.h"
#include "fs/daemon/mountpoint.h"
#include "fs/fuse/mountinfo.h"
#include "store/base/json.h"

namespace memoirfs::cli {
namespace {

struct Options {
  std::string mountpoint;
  std::string agent;
  bool foreground = false;
  bool allow_other = false;
  bool read_only = false;
};

daemon::Request RequestOf(const Options& options, const std::string& mountpoint) {
  daemon::Request request{.operation = daemon::Operation::kMount};
  request.mountpoint = mountpoint;
  if (!options.agent.empty()) request.agent = options.agent;
  request.allow_other = options.allow_other;
  request.read_only = options.read_only;
  return request;
}

daemon::MountRequest MountRequestOf(const Options& options, const std::string& mountpoint) {
  daemon::MountRequest request;
  request.mountpoint = mountpoint;
  if (!options.agent.empty()) request.agent = options.agent;
  request.read_only = options.read_only;
  request.allow_other = options.allow_other;
  return request;
}

// The daemon's main program. With `first`, it mounts that itself: nobody can ask it.
int Serve(const daemon::DaemonOptions& options, const daemon::MountRequest* first,
          daemon::ReadySignal ready) {
  auto started = daemon::Daemon::Start(options);
  Status status = status_internal::AsStatus(started);
  if (status.ok() && first != nullptr) status = (*started)->Mount(*first);
  if (!status.ok()) {
    ready.Failed(status);
    return kFailure;
  }
  ready.Ready();
  return (*started)->Run().ok() ? kSuccess : kFailure;
}

// Asks the daemon that holds the store; starts one first where none does.
Status MountByDaemon(const std::string& store, const daemon::Request& request) {
  ConsoleSink sink;
  return Patiently([&]() -> Status {
    ASSIGN_OR_RETURN(const bool served, IsServed(store));
    if (!served) {
      daemon::DaemonOptions options;
      options.store = store;
      TRY(daemon::RunAsDaemon(
          [&](daemon::ReadySignal ready) { return Serve(options, nullptr, std::move(ready)); }));
    }
    return daemon::AskDaemon(store, request, sink).status();
  });
}

// A daemon of its own for each mount: none can be found by a socket.
Status MountUnwritable(const std::string& store, const daemon::MountRequest& request) {
  if (!request.read_only) {
    return Status(Code::kReadOnly, "the store " + store +
                                       " cannot be written here. Mount it with --read-only, or "
                                       "make it writable");
  }
  daemon::DaemonOptions options;
  options.store = store;
  options.read_only = true;
  return daemon::RunAsDaemon(
      [&](daemon::ReadySignal ready) { return Serve(options, &request, std::move(ready)); });
}

// The mount is there, and it answers.
Status CheckAnswers(const std::string& mountpoint) {
  ASSIGN_OR_RETURN(const auto mounted, fuse::FindMount(mountpoint));
  if (!mounted || mounted->type != fuse::kFileSystemType) {
    return Status(Code::kInternal, "nothing is mounted at " + mountpoint +
                                       " after all. Is it in another mount namespace?");
  }
  struct stat st {};
  if (::stat(mountpoint.c_str(), &st) == 0) return {};
  return Status::FromErrno(errno, "the mount at " + mountpoint + " does not answer");
}

Status MountInForeground(const std::string& store, const Options& options,
                         const std::string& mountpoint, const Output& output) {
  daemon::DaemonOptions daemon_options;
  daemon_options.store = store;
  daemon_options.log_to_file = false;
  daemon_options.read_only = options.read_only && !daemon::IsWritable(store);
  ASSIGN_OR_RETURN(const auto served,
                   Patiently([&] { return daemon::Daemon::Start(daemon_options); }));
  TRY(served->Mount(MountRequestOf(options, mountpoint)));
  output.Text("Mounted at " + mountpoint + "; Ctrl-C unmounts");
  std::fflush(stdout);
  return served->Run();
}

Status MountStore(const std::string& store, const Options& options, const std::string& mountpoint,
                  const Output& output) {
  TRY(daemon::CheckStoreExists(store));
  TRY(daemon::PrepareMountpoint(mountpoint, store));
  if (options.foreground) {
    ASSIGN_OR_RETURN(const bool served, IsServed(store));
    if (served) {
      return Status(Code::kBusy,
                    "a daemon serves this store already. Leave --foreground out: it then serves "
                    "this mount too");
    }
    return MountInForeground(store, options, mountpoint, output);
  }
  TRY(daemon::IsWritable(store) ? MountByDaemon(store, RequestOf(options, mountpoint))
                                : MountUnwritable(store, MountRequestOf(options, mountpoint)));
  TRY(CheckAnswers(mountpoint));
  output.Json(Json{{"mountpoint", mountpoint}, {"store", store}}.dump());
  output.Text("Mounted at " + mountpoint);
  return {};
}

int Run(const Options& options, const Invocation& invocation, const Output& output) {
  const auto mount = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
    ASSIGN_OR_RETURN(const std::string mountpoint, daemon::ResolveMountpoint(options.mountpoint));
    return MountStore(store, options, mountpoint, output);
  };
  const Status status = mount();
  return status.ok() ? kSuccess : output.Fail("mount", status);
}

}  // namespace

void AddMount(Command& root) {
  const auto options = std::make_shared<Options>();
  Command command = root.Add("mount", "Mount agents' memory at a directory");
  command.Value({.name = "MOUNTPOINT", .help = "An empty directory", .required = true},
                options->mountpoint);
  command.Value({.name = "--agent", .help = "Show only this agent's memory", .type = "NAME"},
                options->agent);
  command.Flag("--foreground", "Stay in the foreground, log to stderr", options->foreground);
  command.Flag("--allow-other", "Let other users reach the mount", options->allow_other);
  command.Flag("--read-only", "Refuse every change", options->read_only);
  command.Runs([options](const Invocation& i, const Output& o) { return Run(*options, i, o); });
}

}  // namespace memoirfs::cli
