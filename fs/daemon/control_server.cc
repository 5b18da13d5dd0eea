#include "fs/daemon/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <system_error>
#include <vector>

#include "store/base/log.h"

namespace memoirfs::daemon {
namespace {

// Writes the parts of an answer as lines.
class ChannelSink final : public ReplySink {
 public:
  explicit ChannelSink(LineChannel& channel) : channel_(channel) {}

  Status Progress(const volume::VerifyProgress& progress) override {
    return Send({.kind = Reply::Kind::kProgress, .progress = progress});
  }
  Status Item(const std::string& json) override {
    return Send({.kind = Reply::Kind::kItem, .json = json});
  }
  Status Data(ByteView bytes) override {
    TRY(Send({.kind = Reply::Kind::kData, .data_bytes = bytes.size()}));
    return channel_.Write(bytes);
  }
  Status Send(const Reply& reply) { return channel_.WriteLine(EncodeReply(reply)); }

 private:
  LineChannel& channel_;
};

// Nothing was done: who asked may try again.
Status TooMany() {
  return {Code::kUnavailable, "the daemon answers too many requests already. Try again"};
}

// Without reading the request.
void Refuse(int fd, const Status& reason) {
  LineChannel channel(fd, std::chrono::milliseconds(100));
  const Status sent = channel.WriteLine(ErrorJson(reason));
  if (!sent.ok()) Log(LogLevel::kDebug, "daemon.refuse", sent.ToString());
}

Result<Peer> AdmittedPeer(int fd) {
  ASSIGN_OR_RETURN(const Peer peer, PeerOf(fd));
  if (peer.uid == 0 || peer.uid == ::geteuid()) return peer;
  return Status(Code::kAccess, "only the user who runs the daemon, and root, may ask it");
}

}  // namespace

struct ControlServer::Connection {
  enum class State {
    kWaiting,  // for the whole of its request
    kAnswering,
    kDropped,  // instead of being answered: others wanted its place
    kFinished,
  };

  UniqueFd fd;
  std::thread thread;
  std::atomic<State> state{State::kWaiting};

  bool HoldsPlace() const { return state == State::kWaiting || state == State::kAnswering; }
  // One of two wins: its own thread, which has the request, or who wants its place.
  bool LeaveWaiting(State next) {
    State waiting = State::kWaiting;
    return state.compare_exchange_strong(waiting, next);
  }
};

Result<std::unique_ptr<ControlServer>> ControlServer::Start(const std::string& store,
                                                            Handler handler,
                                                            ControlServerOptions options) {
  ASSIGN_OR_RETURN(UniqueFd listener, ListenOnControlSocket(store));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return Status::FromErrno(errno, "make an eventfd");
  return std::unique_ptr<ControlServer>(
      new ControlServer(store, std::move(listener), std::move(wake), std::move(handler), options));
}

ControlServer::ControlServer(std::string store, UniqueFd listener, UniqueFd wake, Handler handler,
                             ControlServerOptions options)
    : store_(std::move(store)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      handler_(std::move(handler)),
      options_(options),
      acceptor_([this] { AcceptLoop(); }) {}

ControlServer::~ControlServer() {
  StopAccepting();
  std::list<std::unique_ptr<Connection>> rest;
  {
    const MutexLock lock(mutex_);
    rest.swap(connections_);
  }
  for (const auto& connection : rest) {
    // A peer that was to send or take something waits no longer; an answer being made is made.
    ::shutdown(connection->fd.get(), SHUT_RD);
    connection->thread.join();
  }
}

void ControlServer::StopAccepting() {
  if (stopping_.exchange(true)) return;
  ::unlink(ControlSocketPath(store_).c_str());
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof(one)) < 0) {
    Log(LogLevel::kError, "daemon.wake", "cannot wake the control socket's thread");
  }
  acceptor_.join();
  RefuseWaiting();
  listener_.Reset();
}

// Who connected before the socket's name went would see a reset connection, and could not know
// whether its request was carried out.
void ControlServer::RefuseWaiting() {
  ::shutdown(listener_.get(), SHUT_RD);  // nobody connects any more; accept fails where it waited
  while (true) {
    const UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    Refuse(fd.get(), DaemonEnds());
  }
}

size_t ControlServer::active() const {
  const MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& connection) { return connection->HoldsPlace(); }));
}

void ControlServer::AcceptLoop() {
  while (true) {
    std::array<pollfd, 2> entries{pollfd{listener_.get(), POLLIN, 0},
                                  pollfd{wake_.get(), POLLIN, 0}};
    if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) {
      Log(LogLevel::kError, "daemon.poll", Status::FromErrno(errno, "poll").message());
      return;
    }
    if (entries[1].revents != 0) return;
    if (entries[0].revents != 0) AcceptOne();
    JoinFinished();
  }
}

void ControlServer::AcceptOne() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return WaitForDescriptors();
  if (active() >= options_.max_connections && !DropLongestWaiting()) {
    return Refuse(fd.get(), TooMany());
  }
  auto connection = std::make_unique<Connection>();
  connection->fd = std::move(fd);
  Connection& served = *connection;
  const MutexLock lock(mutex_);
  connections_.push_back(std::move(connection));
  try {
    served.thread = std::thread([this, &served] { Serve(served); });
  } catch (const std::system_error&) {
    Refuse(served.fd.get(), {Code::kUnavailable, "the daemon can make no thread now. Try again"});
    connections_.pop_back();
  }
}

// Who connects and asks nothing must not keep out who does: of those whose request is not there
// yet, the one that came first gives way. False where all are being answered.
bool ControlServer::DropLongestWaiting() {
  const MutexLock lock(mutex_);
  for (const auto& connection : connections_) {
    if (!connection->LeaveWaiting(Connection::State::kDropped)) continue;
    ::shutdown(connection->fd.get(), SHUT_RD);  // its thread stops reading, and says so
    return true;
  }
  return false;
}

// The one who waits to be accepted would wake us at once again.
void ControlServer::WaitForDescriptors() {
  constexpr int kPauseMs = 100;
  if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
  pollfd end{wake_.get(), POLLIN, 0};
  ::poll(&end, 1, kPauseMs);
}

void ControlServer::Serve(Connection& connection) {
  const Status status = Answer(connection);
  if (!status.ok()) Log(LogLevel::kInfo, "daemon.request", status.ToString());
  ::shutdown(connection.fd.get(), SHUT_RDWR);
  connection.state = Connection::State::kFinished;
}

Status ControlServer::Answer(Connection& connection) {
  LineChannel channel(connection.fd.get(), options_.write_timeout);
  ChannelSink sink(channel);
  const Result<std::string> result = HandleRequest(connection, channel, sink);
  if (!result.ok()) {
    TRY(sink.Send({.kind = Reply::Kind::kError, .error = result.status()}));
    return result.status();
  }
  return sink.Send({.kind = Reply::Kind::kResult, .json = result.value()});
}

Result<std::string> ControlServer::HandleRequest(Connection& connection, LineChannel& channel,
                                                 ReplySink& sink) {
  const auto deadline = std::chrono::steady_clock::now() + options_.read_timeout;
  ASSIGN_OR_RETURN(const Peer peer, AdmittedPeer(connection.fd.get()));
  const Result<std::string> line = channel.ReadLine(kMaxRequestBytes, deadline);
  if (!line.ok() && stopping_) return DaemonEnds();
  if (!connection.LeaveWaiting(Connection::State::kAnswering)) return TooMany();
  TRY(line);
  ASSIGN_OR_RETURN(const Request request, DecodeRequest(*line));
  try {
    return handler_(request, peer, sink);
  } catch (const std::exception& e) {
    return Status(Code::kInternal, e.what());
  }
}

void ControlServer::JoinFinished() {
  std::vector<std::unique_ptr<Connection>> finished;
  {
    const MutexLock lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto here = it++;
      if ((*here)->state != Connection::State::kFinished) continue;
      finished.push_back(std::move(*here));
      connections_.erase(here);
    }
  }
  for (const auto& connection : finished) connection->thread.join();
}

}  // namespace memoirfs::daemon
