// The life of a mount. Mount() makes the view, mounts, and starts one thread named "fuse" that runs
// libfuse's loop, which adds workers as requests come. The loop ends when the connection does:
// after an unmount by us or anybody, after an abort, or (Attach) when the socket is closed. That
// thread then takes away a mount point that is left, and says that the mount is gone.
//
// The destructor ends the loop in every case, once the requests in work are answered. A lazily
// detached mount with open files keeps its connection; there a signal to the thread of the loop,
// which waits for its workers, makes it see that the session was told to exit, and it cancels them.

#include "fs/fuse/session.h"

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>

#include "fs/fuse/channel.h"
#include "fs/fuse/libfuse_log.h"
#include "fs/fuse/mount.h"
#include "fs/fuse/mountinfo.h"
#include "fs/fuse/notifier.h"
#include "fs/fuse/operations.h"
#include "fs/fuse/reply.h"
#include "store/base/log.h"
#include "store/base/mutex.h"

namespace memoirfs::fuse {
namespace {

constexpr unsigned kLeastThreads = 1;
constexpr unsigned kMostThreads = 64;
constexpr auto kPatience = std::chrono::seconds(1);

// Interrupts the wait of libfuse's loop; nothing else in the process needs a signal of its own. The
// handler stays installed, as another session may be about to send the signal.
int WakeSignal() {
  static const int signal = [] {
    struct sigaction action {};  // without SA_RESTART
    action.sa_handler = [](int) {};
    sigaction(SIGRTMAX - 1, &action, nullptr);
    return SIGRTMAX - 1;
  }();
  return signal;
}

struct FuseArguments {
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  ~FuseArguments() { fuse_opt_free_args(&args); }
  bool Add(const char* word) { return fuse_opt_add_arg(&args, word) == 0; }
};

struct DestroyLoopConfig {
  void operator()(fuse_loop_config* config) const { fuse_loop_cfg_destroy(config); }
};

class MountedSession : public Session {
 public:
  explicit MountedSession(SessionOptions options) : options_(std::move(options)) {}
  ~MountedSession() override;

  Status Prepare(const ViewFactory& make_view);
  Status StartOnDevice();
  Status StartOnSocket(int fd);

  Status Unmount(bool lazy) override;
  void OnGone(std::function<void()> callback) override;
  const SessionOptions& options() const override { return options_; }
  vfs::View& view() override { return *view_; }
  std::string MetricsJson() const override { return context_.metrics.ToJson(); }

 private:
  enum class State { kStarting, kServing, kGone };

  Status StartLoop();
  void RunLoop();
  void SetState(State state);
  bool IsGone() const;
  bool WaitUntilGone();
  bool IsOurMountThere() const;
  void EndLoop();
  void FreeSession();

  const SessionOptions options_;
  std::string path_;                   // of the mount point, canonical; empty on a socket
  std::optional<std::string> device_;  // the mount's, as mountinfo names it
  int socket_ = -1;                    // owned by session_
  SessionContext context_;
  Notifier notifier_;
  std::unique_ptr<vfs::View> view_;
  fuse_session* session_ = nullptr;
  std::thread loop_;

  mutable Mutex mutex_{LockRank::kLeaf};
  CondVar changed_;
  State state_ GUARDED_BY(mutex_) = State::kStarting;
  std::function<void()> on_gone_ GUARDED_BY(mutex_);
};

MountedSession::~MountedSession() {
  if (view_ != nullptr) view_->EndNotifications();
  if (loop_.joinable()) {
    EndLoop();
    loop_.join();
  }
  if (IsOurMountThere()) (void)TakeMountAway(path_, true);  // no loop was started for it
  view_.reset();
  FreeSession();
}

Status MountedSession::Prepare(const ViewFactory& make_view) {
  RouteLibfuseLog();
  ASSIGN_OR_RETURN(view_, make_view(&notifier_));
  context_.view = view_.get();
  context_.on_serving = [this] { SetState(State::kServing); };
  FuseArguments arguments;
  if (!arguments.Add("memoirfs") || !arguments.Add("-o") ||
      !arguments.Add(MountOptionsOf(options_).c_str())) {
    return Status(Code::kOutOfMemory, "no memory for the arguments of libfuse");
  }
  const fuse_lowlevel_ops& table = Operations();
  session_ = fuse_session_new(&arguments.args, &table, sizeof(table), &context_);
  if (session_ == nullptr) {
    return Status(Code::kInternal, "libfuse made no session: " + TakeLibfuseMessage());
  }
  return {};
}

Status MountedSession::StartOnDevice() {
  std::error_code error;
  path_ = std::filesystem::canonical(options_.mountpoint, error).string();
  if (error) return Status::FromErrno(error.value(), "the mount point " + options_.mountpoint);
  if (fuse_session_mount(session_, path_.c_str()) != 0) {
    path_.clear();
    return ExplainMountFailure(options_, TakeLibfuseMessage());
  }
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mounted, FindMount(path_));
  if (mounted) device_ = mounted->device;
  if (fuse_session_custom_io(session_, &DeviceIo(), fuse_session_fd(session_)) != 0) {
    return Status(Code::kInternal, "libfuse takes no reader: " + TakeLibfuseMessage());
  }
  TRY(StartLoop());
  if (device_) WidenReadahead(*device_, kLargestRequest);
  return {};
}

Status MountedSession::StartOnSocket(int fd) {
  if (fuse_session_custom_io(session_, &SocketIo(), fd) != 0) {
    return Status(Code::kInvalidArgument, "the socket cannot be used: " + TakeLibfuseMessage());
  }
  socket_ = fd;
  return StartLoop();
}

Status MountedSession::StartLoop() {
  notifier_.Start(session_);
  // Signals are for the thread that waits for them, not for the workers, which inherit this mask.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, WakeSignal());
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started;
  try {
    loop_ = std::thread([this] { RunLoop(); });
  } catch (const std::system_error& error) {
    started = Status::FromErrno(error.code().value(), "starting the thread of the mount");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  TRY(started);
  MutexLock lock(mutex_);
  while (state_ == State::kStarting) changed_.Wait(mutex_);
  if (state_ == State::kServing) return {};
  return Status(Code::kUnavailable, "the kernel ended the connection before it was in use");
}

void MountedSession::RunLoop() {
  pthread_setname_np(pthread_self(), "fuse");
  const std::unique_ptr<fuse_loop_config, DestroyLoopConfig> config(fuse_loop_cfg_create());
  const unsigned threads = std::clamp(options_.threads, kLeastThreads, kMostThreads);
  fuse_loop_cfg_set_max_threads(config.get(), threads);
  // Workers stay once they are there: making one costs more than many requests.
  fuse_loop_cfg_set_idle_threads(config.get(), threads);
  fuse_loop_cfg_set_clone_fd(config.get(), socket_ < 0 ? 1 : 0);
  if (const int result = fuse_session_loop_mt(session_, config.get()); result < 0) {
    Log(LogLevel::kError, "fuse.loop", Status::FromErrno(-result, "requests ended").message());
  }
  if (IsOurMountThere()) {  // the connection was aborted: a dead mount point helps nobody
    if (Status status = TakeMountAway(path_, true); !status.ok()) {
      Log(LogLevel::kWarn, "fuse.unmount", status.ToString());
    }
  }
  SetState(State::kGone);
}

void MountedSession::SetState(State state) {
  std::function<void()> callback;
  {
    MutexLock lock(mutex_);
    state_ = state;
    if (state == State::kGone) callback = std::exchange(on_gone_, nullptr);
    changed_.NotifyAll();
  }
  if (callback) callback();
}

bool MountedSession::IsGone() const {
  MutexLock lock(mutex_);
  return state_ == State::kGone;
}

bool MountedSession::WaitUntilGone() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (state_ != State::kGone) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    changed_.WaitFor(mutex_, left);
  }
  return true;
}

// Somebody may have taken our mount away, and mounted another there, before the loop noticed.
bool MountedSession::IsOurMountThere() const {
  if (path_.empty() || !device_) return false;
  const auto mounted = FindMount(path_);
  return mounted.ok() && *mounted && (*mounted)->device == device_;
}

Status MountedSession::Unmount(bool lazy) {
  if (IsGone()) return {};
  if (path_.empty()) {
    ::shutdown(socket_, SHUT_RDWR);
    return {};
  }
  if (device_ && !IsOurMountThere()) {
    ASSIGN_OR_RETURN(const bool hidden, IsMountedAt(path_, *device_));
    if (!hidden) return {};  // detached already; open files keep it alive
    return Status(Code::kBusy,
                  "another file system is mounted over " + path_ + ": take that one away first");
  }
  return TakeMountAway(path_, lazy);
}

void MountedSession::OnGone(std::function<void()> callback) {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kGone) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

void MountedSession::EndLoop() {
  if (Status status = Unmount(true); !status.ok()) {
    Log(LogLevel::kWarn, "fuse.unmount", status.ToString());
  }
  while (!WaitUntilGone()) {
    fuse_session_exit(session_);
    // It may come just before the loop waits, and is then sent again.
    pthread_kill(loop_.native_handle(), WakeSignal());
  }
}

// libfuse frees what it keeps of a mount only by unmounting, and does that by path, where another's
// mount may lie by now. It leaves the path alone where poll reports an error on the device, as it
// does for a pipe without a reader, which therefore takes the device's place. With that the device
// is closed, and the kernel ends what is left of the connection.
void MountedSession::FreeSession() {
  if (session_ == nullptr) return;
  std::array<int, 2> pipe{};
  if (!path_.empty() && ::pipe2(pipe.data(), O_CLOEXEC) == 0) {
    ::close(pipe[0]);
    ::dup3(pipe[1], fuse_session_fd(session_), O_CLOEXEC);
    ::close(pipe[1]);
    fuse_session_unmount(session_);
  }
  fuse_session_destroy(session_);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Mount(const SessionOptions& options,
                                                const ViewFactory& make_view) {
  TRY(CheckMountable(options));
  auto session = std::make_unique<MountedSession>(options);
  TRY(session->Prepare(make_view));
  TRY(session->StartOnDevice());
  return std::unique_ptr<Session>(std::move(session));
}

Result<std::unique_ptr<Session>> Session::Attach(const SessionOptions& options,
                                                 const ViewFactory& make_view, int fd) {
  auto session = std::make_unique<MountedSession>(options);
  if (Status status = session->Prepare(make_view); !status.ok()) {
    ::close(fd);
    return status;
  }
  TRY(session->StartOnSocket(fd));
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace memoirfs::fuse
