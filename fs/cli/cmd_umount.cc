#include <chrono>
#include <thread>

#include "fs/cli/commands.h"
#include "fs/cli/store_access.h"
#include "fs/daemon/control_client.h"
#include "fs/daemon/mountpoint.h"
#include "fs/fuse/mount.h"
#include "fs/fuse/mountinfo.h"
#include "store/base/json.h"
#include "store/volume/store_lock.h"

namespace memoirfs::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::milliseconds kPollInterval{20};

struct Options {
  std::string mountpoint;
  bool lazy = false;
};

// Which store is mounted there: what the mount itself names, unless the user did.
Result<std::string> StoreOf(const std::string& mountpoint, const Invocation& invocation) {
  ASSIGN_OR_RETURN(const auto mounted, fuse::FindMount(mountpoint));
  if (!mounted || mounted->type != fuse::kFileSystemType) {
    return Status(Code::kNotFound, "no memory is mounted at " + mountpoint);
  }
  if (!invocation.store.empty()) return invocation.StorePath();
  return mounted->source;
}

// True once `done` says so; false when patience ran out.
Result<bool> WaitUntil(const std::function<Result<bool>()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return true;
    std::this_thread::sleep_for(kPollInterval);
  }
  return false;
}

Status WaitUntilGone(const std::string& mountpoint) {
  ASSIGN_OR_RETURN(const bool gone, WaitUntil([&]() -> Result<bool> {
                     ASSIGN_OR_RETURN(const auto mounted, fuse::FindMount(mountpoint));
                     return !mounted || mounted->type != fuse::kFileSystemType;
                   }));
  return gone ? Status() : Status(Code::kBusy, mountpoint + " is still mounted");
}

Status WaitUntilReleased(const std::string& store) {
  ASSIGN_OR_RETURN(const bool free, WaitUntil([&]() -> Result<bool> {
                     ASSIGN_OR_RETURN(const auto holder, volume::StoreLock::Holder(store));
                     return !holder.has_value();
                   }));
  return free ? Status()
              : Status(Code::kBusy, "unmounted, but the daemon is still at work on " + store);
}

// Its daemon notices, saves what is open, and ends.
Status UmountWithoutAsking(const Options& options, const std::string& mountpoint) {
  TRY(fuse::TakeMountAway(mountpoint, options.lazy));
  return WaitUntilGone(mountpoint);
}

Status UmountByDaemon(const Options& options, const std::string& mountpoint,
                      const std::string& store) {
  daemon::Request request{.operation = daemon::Operation::kUmount};
  request.mountpoint = mountpoint;
  request.lazy = options.lazy;
  ConsoleSink sink;
  ASSIGN_OR_RETURN(const std::string answer, daemon::AskDaemon(store, request, sink));
  TRY(WaitUntilGone(mountpoint));
  ASSIGN_OR_RETURN(const Json result, ParseJson(answer));
  return result.value("last", false) ? WaitUntilReleased(store) : Status();
}

Status Umount(const Options& options, const std::string& mountpoint, const Invocation& invocation,
              const Output& output) {
  ASSIGN_OR_RETURN(const std::string store, StoreOf(mountpoint, invocation));
  if (daemon::IsDeadMount(mountpoint)) return fuse::TakeMountAway(mountpoint, /*lazy=*/true);
  const Result<bool> served = IsServed(store);
  // The path is the mount's word, of when it was made; with --store it is the user's.
  if (served.code() == Code::kNotFound && invocation.store.empty()) {
    TRY(UmountWithoutAsking(options, mountpoint));
    output.Warn("the store is not at " + store + " any more: its daemon could not be asked. It " +
                "saves what is not saved yet, and ends with its last mount; see its log");
    return {};
  }
  TRY(served);
  // A daemon that has no socket serves a store that it cannot write: it has nothing to save.
  return *served ? UmountByDaemon(options, mountpoint, store)
                 : UmountWithoutAsking(options, mountpoint);
}

int Run(const Options& options, const Invocation& invocation, const Output& output) {
  const Result<std::string> mountpoint = daemon::ResolveMountpoint(options.mountpoint);
  if (!mountpoint.ok()) return output.Fail("umount", mountpoint.status());
  const Status status = Umount(options, *mountpoint, invocation, output);
  if (!status.ok()) return output.Fail("umount", status);
  output.Json(DumpJson(Json{{"mountpoint", *mountpoint}}));
  output.Text("Unmounted " + *mountpoint);
  return kSuccess;
}

}  // namespace

void AddUmount(Command& root) {
  const auto options = std::make_shared<Options>();
  Command command =
      root.Add("umount", "Save everything, unmount, and wait until the mount is gone");
  command.Value({.name = "MOUNTPOINT", .help = "Where it is mounted", .required = true},
                options->mountpoint);
  command.Flag("--lazy", "Also when files are open there", options->lazy);
  command.Runs([options](const Invocation& i, const Output& o) { return Run(*options, i, o); });
}

}  // namespace memoirfs::cli
