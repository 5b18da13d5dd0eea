#pragma once

// The composition root of a serving process: one store, opened under its lock; one Vfs over it; any
// number of mounts; the control socket. It lives as long as there are mounts.
//
// Life: Start opens and listens. Run waits. It ends when the last mount is gone (whoever took it
// away), on SIGTERM, SIGINT or SIGHUP, on a `stop` request, or when nobody asked for a mount for
// half a minute. At the end everything is committed, mounts are taken away, the store is
// checkpointed, its heads are noted, and the lock is released.

#include <atomic>
#include <memory>
#include <string>

#include "fs/daemon/control_server.h"
#include "fs/daemon/mounts.h"
#include "fs/daemon/open_store.h"
#include "fs/daemon/store_service.h"
#include "fs/vfs/vfs.h"
#include "store/base/unique_fd.h"

namespace memoirfs::daemon {

struct DaemonOptions {
  std::string store;        // absolute
  bool log_to_file = true;  // daemon.log in the state directory; else stderr
  // For a store that cannot be written: nothing in it is, so that there is no control socket, and
  // other readers are not excluded. Ends when its mounts are gone.
  bool read_only = false;
  SessionFactory session_factory;  // empty: real mounts
  std::chrono::milliseconds first_mount_timeout{30'000};
};

class Daemon final : public ServingHooks {
 public:
  // Precondition: this process has one thread (signals are blocked for all that follow).
  static Result<std::unique_ptr<Daemon>> Start(const DaemonOptions& options);
  ~Daemon() override;

  Status Mount(const MountRequest& request);
  // Until it is to end; then ends everything but this object. What failed then is the result.
  Status Run();
  // Makes Run end. Any thread.
  void Stop();

  ServingFacts Facts() const override;
  Status CommitDirty() override;
  void AgentChanged(const std::string& name) override;
  bool Ending() const override { return stop_; }

 private:
  Daemon(DaemonOptions options, std::unique_ptr<OpenedStore> store, UniqueFd wake,
         UniqueFd signals);

  Result<std::string> Handle(const Request& request, const Peer& peer, ReplySink& sink);
  Result<std::string> HandleUmount(const Request& request);
  void Wake() const;
  // False when it is time to end.
  bool WaitForWork();
  // True when nobody needs it any more; then no mount is made after that.
  bool EndsIdle();
  Status MakeDurable();
  Status Finish();

  const DaemonOptions options_;
  const UniqueFd wake_;     // eventfd
  const UniqueFd signals_;  // signalfd
  std::atomic<bool> stop_{false};
  std::atomic<bool> mount_tried_{false};
  const std::chrono::steady_clock::time_point started_;
  // In the order in which they depend on each other.
  std::unique_ptr<OpenedStore> store_;
  std::unique_ptr<vfs::Vfs> vfs_;
  std::unique_ptr<Mounts> mounts_;
  std::unique_ptr<StoreService> service_;
  std::unique_ptr<ControlServer> server_;
};

}  // namespace memoirfs::daemon
