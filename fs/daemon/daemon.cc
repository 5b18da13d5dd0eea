#include "fs/daemon/daemon.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>

#include "fs/daemon/mountpoint.h"
#include "store/base/json.h"
#include "store/base/log.h"

namespace memoirfs::daemon {
namespace {

// How often heads are noted outside the store while it is in use.
constexpr std::chrono::milliseconds kAnchorInterval{10'000};

Result<UniqueFd> BlockAndWatchSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  // Blocked in this thread and, by inheritance, in all that start later: signalfd reads them.
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A peer that is gone, and `ulimit -f`: the write fails, of which its caller is told.
  for (int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return Status::FromErrno(errno, "make a signalfd");
  return fd;
}

MountRequest MountRequestOf(const Request& request) {
  return {request.mountpoint, request.agent, request.read_only, request.allow_other};
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options) {
  ASSIGN_OR_RETURN(UniqueFd signals, BlockAndWatchSignals());
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Status::FromErrno(errno, "make an eventfd");
  OpenOptions open_options;
  open_options.socket = ControlSocketPath(options.store);
  open_options.log_to_file = options.log_to_file;
  open_options.read_only = options.read_only;
  ASSIGN_OR_RETURN(auto store, OpenedStore::Open(options.store, open_options));
  std::unique_ptr<Daemon> daemon(
      new Daemon(options, std::move(store), std::move(wake), std::move(signals)));
  Log(LogLevel::kInfo, "daemon.start", "serving " + options.store);
  if (options.read_only) return daemon;
  ASSIGN_OR_RETURN(
      daemon->server_,
      ControlServer::Start(options.store, [self = daemon.get()](const Request& request,
                                                                const Peer& peer, ReplySink& sink) {
        return self->Handle(request, peer, sink);
      }));
  return daemon;
}

Daemon::Daemon(DaemonOptions options, std::unique_ptr<OpenedStore> store, UniqueFd wake,
               UniqueFd signals)
    : options_(std::move(options)),
      wake_(std::move(wake)),
      signals_(std::move(signals)),
      started_(std::chrono::steady_clock::now()),
      store_(std::move(store)),
      vfs_(std::make_unique<vfs::Vfs>(store_->volume())) {
  const SessionFactory factory =
      options_.session_factory ? options_.session_factory : SessionFactory(fuse::Session::Mount);
  mounts_ = std::make_unique<Mounts>(*vfs_, options_.store, factory, [this] { Wake(); });
  service_ = std::make_unique<StoreService>(*store_, *this);
  vfs_->SetStatusSource(
      [this](const std::optional<std::string>& agent) { return service_->StatusJson(agent); });
}

Daemon::~Daemon() {
  server_.reset();  // joins what still asks for the rest
  mounts_->UnmountAll();
  mounts_.reset();
  vfs_.reset();
  service_.reset();
  store_.reset();
}

Status Daemon::Mount(const MountRequest& request) {
  struct Tried {  // even when it failed: a daemon whose only mount failed ends
    Daemon& daemon;
    ~Tried() {
      daemon.mount_tried_ = true;
      daemon.Wake();
    }
  } tried{*this};
  TRY(PrepareMountpoint(request.mountpoint, options_.store));
  if (request.agent) TRY(store_->volume().FindAgent(*request.agent));
  MountRequest effective = request;
  effective.read_only = request.read_only || store_->volume().Facts().read_only;
  TRY(mounts_->Mount(effective));
  Log(LogLevel::kInfo, "daemon.mounted", request.mountpoint);
  return {};
}

Status Daemon::Run() {
  while (WaitForWork()) {
    mounts_->Reap();
    const Status status = store_->UpdateAnchors();
    if (!status.ok()) Log(LogLevel::kError, "daemon.anchor", status.ToString());
  }
  return Finish();
}

void Daemon::Stop() {
  stop_ = true;
  Wake();
}

void Daemon::Wake() const {
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof(one)) < 0 && errno != EAGAIN) {
    Log(LogLevel::kError, "daemon.wake", "cannot wake the main thread");
  }
}

bool Daemon::WaitForWork() {
  mounts_->Reap();
  if (stop_ || EndsIdle()) return false;
  std::array<pollfd, 2> entries{pollfd{wake_.get(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
  const auto timeout =
      std::min<std::chrono::milliseconds>(kAnchorInterval, options_.first_mount_timeout);
  ::poll(entries.data(), entries.size(), static_cast<int>(timeout.count()));
  uint64_t woken = 0;
  if (::read(wake_.get(), &woken, sizeof(woken)) < 0 && errno != EAGAIN) return false;
  signalfd_siginfo signal{};
  if (::read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
    Log(LogLevel::kInfo, "daemon.signal", "signal " + std::to_string(signal.ssi_signo));
    stop_ = true;
  }
  return !stop_ && !EndsIdle();
}

bool Daemon::EndsIdle() {
  const bool waited_enough =
      mount_tried_ || std::chrono::steady_clock::now() - started_ >= options_.first_mount_timeout;
  return waited_enough && mounts_->CloseIfEmpty();
}

Status Daemon::Finish() {
  stop_ = true;  // however it came to this
  if (server_) server_->StopAccepting();
  // Before anything that may wait: what is on the mounts becomes durable.
  Status status = vfs_->CommitAll();
  mounts_->UnmountAll();
  for (const Status& next : {vfs_->CommitAll(), MakeDurable(), store_->UpdateAnchors()}) {
    if (status.ok()) status = next;
  }
  Log(status.ok() ? LogLevel::kInfo : LogLevel::kError, "daemon.stop", status.ToString());
  return status;
}

// On a full disk a barrier must do: the journal has everything, and the next opening replays it.
Status Daemon::MakeDurable() {
  volume::Volume& volume = store_->volume();
  if (volume.Facts().read_only) return {};
  const Status status = volume.Checkpoint();
  if (!IsLackOfRoom(status.code())) return status;
  Log(LogLevel::kWarn, "daemon.checkpoint", status.ToString());
  return volume.Sync();
}

Result<std::string> Daemon::Handle(const Request& request, const Peer& peer, ReplySink& sink) {
  switch (request.operation) {
    case Operation::kMount:
      TRY(Mount(MountRequestOf(request)));
      return std::string("{}");
    case Operation::kUmount:
      return HandleUmount(request);
    case Operation::kStop:
      Stop();
      return std::string("{}");
    case Operation::kFsck:
      return Status(Code::kBusy, "the store is mounted. Unmount all of its mounts first");
    default:
      return service_->Handle(request, peer, sink);
  }
}

Result<std::string> Daemon::HandleUmount(const Request& request) {
  TRY(mounts_->Unmount(request.mountpoint, request.lazy));
  Log(LogLevel::kInfo, "daemon.unmounted", request.mountpoint);
  TRY(MakeDurable());
  const bool last = mounts_->count() == 0;
  return DumpJson(Json{{"mountpoint", request.mountpoint}, {"last", last}});
}

ServingFacts Daemon::Facts() const {
  return {true, mounts_->List(), vfs_->dirty_bytes(), vfs_->open_files()};
}

Status Daemon::CommitDirty() { return vfs_->CommitAll(); }

void Daemon::AgentChanged(const std::string& name) { vfs_->AgentChanged(name); }

}  // namespace memoirfs::daemon
