// The control socket against peers that behave and peers that don't.

#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "fs/daemon/control_client.h"
#include "fs/daemon/control_server.h"
#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {
namespace {

using test::Scratch;
using namespace std::chrono_literals;

constexpr auto kPatience = 10s;

class Collector final : public ReplySink {
 public:
  Status Progress(const volume::VerifyProgress& progress) override {
    dones.push_back(progress.done);
    return {};
  }
  Status Item(const std::string& json) override {
    items.push_back(json);
    return {};
  }
  Status Data(ByteView bytes) override {
    data += bytes;
    return {};
  }

  std::vector<uint64_t> dones;
  std::vector<std::string> items;
  Bytes data;
};

// Answers each kind of request in its own way.
Result<std::string> Handle(const Request& request, const Peer& peer, ReplySink& sink) {
  switch (request.operation) {
    case Operation::kStatus:
      return "{\"uid\":" + std::to_string(peer.uid) + "}";
    case Operation::kCat:
      TRY(sink.Data(Bytes("a\nb\0c", 5)));
      TRY(sink.Data(Bytes(kMaxDataBytes, 'x')));
      return std::string("{}");
    case Operation::kVerify:
      for (uint64_t done = 1; done <= 3; ++done) TRY(sink.Progress({"records", done, 3}));
      return std::string("{\"verdict\":\"intact\"}");
    case Operation::kLog:
      TRY(sink.Item("{\"line\":\"한국어\"}"));
      return std::string("{}");
    case Operation::kStop:
      throw std::runtime_error("thrown by a library");
    default:
      return Status(Code::kBusy, "files are open there", EBUSY);
  }
}

ControlServerOptions Quick() {
  ControlServerOptions options;
  options.read_timeout = 200ms;
  return options;
}

// What the server says to raw bytes: its first line, decoded.
Result<Reply> SayRaw(const std::string& store, const std::string& bytes, bool close_writing) {
  ASSIGN_OR_RETURN(const UniqueFd fd, ConnectToControlSocket(store));
  LineChannel channel(fd.get(), 2000ms);
  // The server may close before it took everything: only its answer matters.
  const Status written = channel.Write(bytes);
  static_cast<void>(written);
  if (close_writing) ::shutdown(fd.get(), SHUT_WR);
  ASSIGN_OR_RETURN(const std::string line,
                   channel.ReadLine(kMaxReplyLine, std::chrono::steady_clock::now() + kPatience));
  return DecodeReply(line);
}

Request Of(Operation operation) {
  Request request;
  request.operation = operation;
  return request;
}

}  // namespace

TEST_CASE("a request is answered with its parts and its result") {
  const Scratch store;
  const auto server = ControlServer::Start(store.path(), Handle);
  REQUIRE(server.ok());
  Collector sink;

  CHECK(AskDaemon(store.path(), Of(Operation::kStatus), sink).value() ==
        "{\"uid\":" + std::to_string(::geteuid()) + "}");
  CHECK(AskDaemon(store.path(), Of(Operation::kVerify), sink).ok());
  CHECK(sink.dones == std::vector<uint64_t>{1, 2, 3});
  CHECK(AskDaemon(store.path(), Of(Operation::kLog), sink).ok());
  CHECK(sink.items == std::vector<std::string>{"{\"line\":\"한국어\"}"});
  CHECK(AskDaemon(store.path(), Of(Operation::kCat), sink).ok());
  CHECK(sink.data == Bytes("a\nb\0c", 5) + Bytes(kMaxDataBytes, 'x'));
}

TEST_CASE("an error arrives with its code, errno and message") {
  const Scratch store;
  const auto server = ControlServer::Start(store.path(), Handle);
  REQUIRE(server.ok());
  Collector sink;
  const auto answer = AskDaemon(store.path(), Of(Operation::kUmount), sink);
  CHECK(answer.code() == Code::kBusy);
  CHECK(answer.status().ToErrno() == EBUSY);
  CHECK(answer.status().message() == "files are open there");
  CHECK(AskDaemon(store.path(), Of(Operation::kStop), sink).code() == Code::kInternal);
  CHECK(AskDaemon(store.path(), Of(Operation::kStatus), sink).ok());
}

TEST_CASE("garbage gets an error and leaves the server answering") {
  const Scratch store;
  const auto server = ControlServer::Start(store.path(), Handle, Quick());
  REQUIRE(server.ok());
  const std::vector<std::string> garbage = {"\n",
                                            "hello\n",
                                            "[]\n",
                                            "{}\n",
                                            "{\"op\":\"unknown\"}\n",
                                            "{\"op\":7}\n",
                                            "{\"op\":\"status\",\"seq\":-1}\n",
                                            "{\"op\":\"status\",\"agent\":{}}\n",
                                            "{\"op\":\"status\",\"op\":\"stop\"}\n",
                                            "{\"op\":\"status\",\"path\":\"\\u0000\"}\n",
                                            "{\"op\":\"verify\",\"level\":\"all\"}\n",
                                            std::string("\0\xff\xfe\n", 4),
                                            std::string(1000, '[') + "\n"};
  for (const std::string& bytes : garbage) {
    INFO(bytes.substr(0, 60));
    const auto reply = SayRaw(store.path(), bytes, false);
    REQUIRE(reply.ok());
    CHECK(reply->kind == Reply::Kind::kError);
  }
  Collector sink;
  CHECK(AskDaemon(store.path(), Of(Operation::kStatus), sink).ok());
}

TEST_CASE("a request that is too long is refused, not stored") {
  const Scratch store;
  const auto server = ControlServer::Start(store.path(), Handle, Quick());
  REQUIRE(server.ok());
  const auto reply = SayRaw(store.path(), std::string(kMaxRequestBytes + 1024, ' '), false);
  REQUIRE(reply.ok());
  CHECK(reply->error.code() == Code::kTooLarge);
}

TEST_CASE("a peer that closes half-way or says nothing gets an error in time") {
  const Scratch store;
  const auto server = ControlServer::Start(store.path(), Handle, Quick());
  REQUIRE(server.ok());
  const auto half = SayRaw(store.path(), "{\"op\":\"sta", true);
  REQUIRE(half.ok());
  CHECK(half->error.code() == Code::kNotFound);
  const auto silent = SayRaw(store.path(), "{\"op\":\"sta", false);
  REQUIRE(silent.ok());
  CHECK(silent->error.code() == Code::kUnavailable);
}

TEST_CASE("status answers while long work goes on") {
  const Scratch store;
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false;
  bool released = false;
  const auto server = ControlServer::Start(
      store.path(), [&](const Request& request, const Peer&, ReplySink&) -> Result<std::string> {
        if (request.operation == Operation::kVerify) {
          std::unique_lock lock(mutex);
          entered = true;
          changed.notify_all();
          changed.wait(lock, [&] { return released; });
        }
        return std::string("{}");
      });
  REQUIRE(server.ok());
  std::thread verify([&] {
    Collector sink;
    static_cast<void>(AskDaemon(store.path(), Of(Operation::kVerify), sink));
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  Collector sink;
  CHECK(AskDaemon(store.path(), Of(Operation::kStatus), sink).ok());
  CHECK((*server)->active() >= 1);
  {
    const std::lock_guard lock(mutex);
    released = true;
  }
  changed.notify_all();
  verify.join();
}

TEST_CASE("more requests than allowed are told to try again") {
  const Scratch store;
  std::promise<void> entered;
  std::promise<void> released;
  ControlServerOptions options;
  options.max_connections = 1;
  const auto wait = [&](const Request&, const Peer&, ReplySink&) -> Result<std::string> {
    entered.set_value();
    released.get_future().wait();
    return std::string("{}");
  };
  const auto server = ControlServer::Start(store.path(), wait, options);
  REQUIRE(server.ok());
  auto first = std::async(std::launch::async, [&] {
    Collector sink;
    return AskDaemon(store.path(), Of(Operation::kVerify), sink).status();
  });
  entered.get_future().wait();
  Collector sink;
  CHECK(AskDaemon(store.path(), Of(Operation::kStatus), sink).code() == Code::kUnavailable);
  released.set_value();
  CHECK(first.get().ok());
}

TEST_CASE("connections that ask nothing keep nobody out") {
  const Scratch store;
  ControlServerOptions options;
  options.read_timeout = 1h;
  options.max_connections = 4;
  const auto server = ControlServer::Start(store.path(), Handle, options);
  REQUIRE(server.ok());
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 10; ++i) {
    auto fd = ConnectToControlSocket(store.path());
    REQUIRE(fd.ok());
    idle.push_back(std::move(fd).value());
    Collector sink;
    CHECK(AskDaemon(store.path(), Of(Operation::kStatus), sink).ok());
  }
  CHECK((*server)->active() <= options.max_connections);
  LineChannel dropped(idle.front().get(), 2000ms);
  const auto told = dropped.ReadLine(kMaxReplyLine, std::chrono::steady_clock::now() + kPatience);
  REQUIRE(told.ok());
  CHECK(DecodeReply(*told)->error.code() == Code::kUnavailable);
}

TEST_CASE("who asks a server that stops learns that nothing was done") {
  const Scratch store;
  std::atomic<int> handled = 0;
  const auto count = [&](const Request&, const Peer&, ReplySink&) -> Result<std::string> {
    ++handled;
    return std::string("{}");
  };
  std::atomic<int> answered = 0;
  std::atomic<bool> stopped = false;
  const auto ask = [&] {
    Collector sink;
    while (true) {
      const auto answer = AskDaemon(store.path(), Of(Operation::kStatus), sink);
      if (answer.ok()) ++answered;
      if (answer.code() == Code::kUnavailable && stopped) return Status();
      if (!answer.ok() && answer.code() != Code::kUnavailable) {
        stopped = true;
        return answer.status();
      }
    }
  };
  std::vector<std::future<Status>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::async(std::launch::async, ask));
  for (int round = 1; round <= 100 && !stopped; ++round) {
    const auto server = ControlServer::Start(store.path(), count);
    REQUIRE(server.ok());
    while (handled < round * 10 && !stopped) std::this_thread::yield();
  }
  stopped = true;
  for (auto& client : clients) CHECK(client.get().ToString() == Status().ToString());
  CHECK(answered == handled);
}

TEST_CASE("the socket is the owner's alone and gone when the server stops") {
  const Scratch store;
  {
    const auto server = ControlServer::Start(store.path(), Handle);
    REQUIRE(server.ok());
    struct stat st {};
    REQUIRE(::lstat(ControlSocketPath(store.path()).c_str(), &st) == 0);
    CHECK(S_ISSOCK(st.st_mode));
    CHECK((st.st_mode & 07777) == 0600);
  }
  Collector sink;
  CHECK(AskDaemon(store.path(), Of(Operation::kStatus), sink).code() == Code::kUnavailable);
}

TEST_CASE("a store's path longer than a socket address works") {
  const Scratch root;
  std::string path = root.path();
  while (path.size() < 400) path += "/" + std::string(60, 'd');
  std::filesystem::create_directories(path);
  const auto server = ControlServer::Start(path, Handle);
  REQUIRE(server.ok());
  Collector sink;
  CHECK(AskDaemon(path, Of(Operation::kStatus), sink).ok());
}

TEST_CASE("a link planted at the socket's name is replaced, not followed") {
  const Scratch store;
  const Scratch elsewhere;
  std::filesystem::create_symlink(elsewhere / "target", ControlSocketPath(store.path()));
  const auto server = ControlServer::Start(store.path(), Handle);
  REQUIRE(server.ok());
  CHECK(std::filesystem::is_empty(elsewhere.path()));
}

TEST_CASE("requests and replies survive the wire") {
  Request request;
  request.operation = Operation::kMount;
  request.agent = "planner";
  request.mountpoint = "/mnt/기억 🙂";
  request.path = "a\"b\\c";
  request.seq = 7;
  request.since_seq = 3;
  request.limit = 50;
  request.level = volume::VerifyLevel::kIndex;
  request.allow_other = request.read_only = request.lazy = request.purge = request.repair = true;
  const auto decoded = DecodeRequest(EncodeRequest(request).value());
  REQUIRE(decoded.ok());
  CHECK(EncodeRequest(*decoded).value() == EncodeRequest(request).value());
  CHECK(decoded->agent == request.agent);
  CHECK(decoded->mountpoint == request.mountpoint);
  CHECK(decoded->seq == request.seq);
  CHECK(decoded->level == request.level);

  request.path = "\xff";
  CHECK(EncodeRequest(request).code() == Code::kIllegalName);
  CHECK_FALSE(DecodeReply("{\"bytes\":99999999}").ok());
  CHECK_FALSE(DecodeReply("{\"error\":7}").ok());
  CHECK_FALSE(DecodeReply("{}").ok());
}

}  // namespace memoirfs::daemon
