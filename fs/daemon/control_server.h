#pragma once

// Answers requests on the control socket: one connection, one request. Each connection has a
// thread of its own, so that long work (verify) and short questions (status) do not wait for each
// other. Only the daemon's own user and root are answered. A peer that sends garbage, too much or
// nothing costs one thread for a few seconds and gets an error; where there are many, the one that
// sent nothing for longest gives way.

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "fs/daemon/control_socket.h"
#include "fs/daemon/request.h"
#include "store/base/mutex.h"

namespace memoirfs::daemon {

struct ControlServerOptions {
  std::chrono::milliseconds read_timeout{5'000};     // until the whole request is there
  std::chrono::milliseconds write_timeout{300'000};  // a pager may hold an answer back for long
  size_t max_connections = 32;
};

// Thread-safe. The handler is called on many threads at once; its result is a JSON object's text.
class ControlServer {
 public:
  using Handler = std::function<Result<std::string>(const Request&, const Peer&, ReplySink&)>;

  static Result<std::unique_ptr<ControlServer>> Start(const std::string& store, Handler handler,
                                                      ControlServerOptions options = {});
  ~ControlServer();  // StopAccepting, then waits for what is being answered

  // No new request is taken: those that wait are answered with DaemonEnds. The socket's name is
  // gone. Answers under way go on.
  void StopAccepting();
  // Connections that wait for their request, or are being answered, now.
  size_t active() const;

 private:
  struct Connection;

  ControlServer(std::string store, UniqueFd listener, UniqueFd wake, Handler handler,
                ControlServerOptions options);
  void AcceptLoop();
  void AcceptOne();
  bool DropLongestWaiting();
  void WaitForDescriptors();
  void RefuseWaiting();
  void Serve(Connection& connection);
  Status Answer(Connection& connection);
  Result<std::string> HandleRequest(Connection& connection, LineChannel& channel, ReplySink& sink);
  void JoinFinished();

  const std::string store_;
  UniqueFd listener_;
  UniqueFd wake_;  // an eventfd: readable when accepting is to stop
  const Handler handler_;
  const ControlServerOptions options_;
  mutable Mutex mutex_;
  std::list<std::unique_ptr<Connection>> connections_ GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
};

}  // namespace memoirfs::daemon
