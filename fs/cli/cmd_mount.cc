#include <sys/stat.h>

#include "fs/cli/commands.h"
#include "fs/cli/serve.h"
#include "fs/cli/store_access.h"
#include "fs/daemon/control_client.h"
#include "fs/daemon/mountpoint.h"
#include "fs/fuse/mountinfo.h"
#include "store/base/json.h"

namespace memoirfs::cli {
namespace {

struct Options {
  MountOptions mount;
  bool foreground = false;
};

daemon::Request RequestOf(const daemon::MountRequest& mount) {
  daemon::Request request{.operation = daemon::Operation::kMount};
  request.mountpoint = mount.mountpoint;
  request.agent = mount.agent;
  request.allow_other = mount.allow_other;
  request.read_only = mount.read_only;
  return request;
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

// Asks the daemon that holds the store; starts one first where none does.
Status MountByDaemon(const std::string& store, const daemon::MountRequest& request) {
  ConsoleSink sink;
  return Patiently([&]() -> Status {
    ASSIGN_OR_RETURN(const bool served, IsServed(store));
    if (!served && !daemon::IsWritable(store)) return MountUnwritable(store, request);
    // Before a daemon is started that could not be asked.
    TRY(daemon::EncodeRequest(RequestOf(request)));
    if (!served) {
      daemon::DaemonOptions options;
      options.store = store;
      TRY(daemon::RunAsDaemon(
          [&](daemon::ReadySignal ready) { return Serve(options, nullptr, std::move(ready)); }));
    }
    return daemon::AskDaemon(store, RequestOf(request), sink).status();
  });
}

// The daemon mounts where it lives. A mount that nobody here sees is taken away again.
Status CheckIsHere(const std::string& store, const std::string& mountpoint) {
  ASSIGN_OR_RETURN(const auto mounted, fuse::FindMount(mountpoint));
  if (mounted && mounted->type == fuse::kFileSystemType) return {};
  daemon::Request request{.operation = daemon::Operation::kUmount};
  request.mountpoint = mountpoint;
  ConsoleSink sink;
  const Status undone = daemon::AskDaemon(store, request, sink).status();
  return Status(Code::kNotSupported,
                "the daemon of " + store +
                    " runs in another mount namespace, where it mounts. "
                    "Mount there, and bring the mount here (a bind mount, or a shared namespace)" +
                    (undone.ok() ? "" : "; what it mounted is still there: " + undone.ToString()));
}

Status CheckAnswers(const std::string& mountpoint) {
  struct stat st {};
  if (::stat(mountpoint.c_str(), &st) == 0) return {};
  return Status::FromErrno(errno, "the mount at " + mountpoint + " does not answer");
}

// A store that is not what it was takes no changes: whoever mounts it must not learn that from the
// first save that fails.
void WarnOfReadOnly(const std::string& store, const Output& output) {
  const daemon::Request request{.operation = daemon::Operation::kStatus};
  const Result<std::string> answer = Ask(store, request, Access::kRead);
  if (!answer.ok()) return;
  const Json status = Json::parse(*answer);
  if (const std::string why = TextOf(status, "read_only_reason"); !why.empty()) {
    output.Warn("read-only: " + why);
  }
}

Status MountInForeground(const std::string& store, const daemon::MountRequest& request,
                         const Output& output) {
  TRY(CheckFreeToServe(store));
  const daemon::DaemonOptions options = ForegroundOptions(store, request);
  ASSIGN_OR_RETURN(const auto served, StartPatiently(options));
  TRY(served->Mount(request));
  output.Text("Mounted at " + request.mountpoint + "; Ctrl-C unmounts");
  std::fflush(stdout);
  return served->Run();
}

Status MountStore(const std::string& store, const daemon::MountRequest& request, bool foreground,
                  const Output& output) {
  TRY(daemon::CheckStoreExists(store));
  TRY(daemon::PrepareMountpoint(request.mountpoint, store));
  if (foreground) return MountInForeground(store, request, output);
  TRY(MountByDaemon(store, request));
  TRY(CheckIsHere(store, request.mountpoint));
  TRY(CheckAnswers(request.mountpoint));
  if (!request.read_only) WarnOfReadOnly(store, output);
  output.Json(DumpJson(Json{{"mountpoint", request.mountpoint}, {"store", store}}));
  output.Text("Mounted at " + request.mountpoint);
  return {};
}

int Run(const Options& options, const Invocation& invocation, const Output& output) {
  const auto mount = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
    ASSIGN_OR_RETURN(const daemon::MountRequest request, options.mount.ToRequest());
    return MountStore(store, request, options.foreground, output);
  };
  const Status status = mount();
  return status.ok() ? kSuccess : output.Fail("mount", status);
}

}  // namespace

void AddMount(Command& root) {
  const auto options = std::make_shared<Options>();
  Command command = root.Add("mount", "Mount agents' memory at a directory");
  AddMountOptions(command, options->mount);
  command.Flag("--foreground", "Stay in the foreground, log to stderr", options->foreground);
  command.Runs([options](const Invocation& i, const Output& o) { return Run(*options, i, o); });
}

}  // namespace memoirfs::cli
