#include "fs/daemon/control_client.h"

#include "fs/daemon/control_socket.h"

namespace memoirfs::daemon {
namespace {

constexpr std::chrono::milliseconds kWriteTimeout{10'000};
// Checkpoints on a slow disk and the verification of a big store take their time; a daemon that
// died closes the connection at once.
constexpr std::chrono::hours kAnswerTimeout{24};

}  // namespace

Result<std::string> AskDaemon(const std::string& store, const Request& request, ReplySink& sink) {
  ASSIGN_OR_RETURN(const std::string line, EncodeRequest(request));
  ASSIGN_OR_RETURN(const UniqueFd fd, ConnectToControlSocket(store));
  LineChannel channel(fd.get(), kWriteTimeout);
  // A daemon that refuses the connection says why and closes it, without reading: what it said
  // matters more than that the request could not be written.
  const Status written = channel.WriteLine(line);
  while (true) {
    const auto deadline = std::chrono::steady_clock::now() + kAnswerTimeout;
    auto answer = channel.ReadLine(kMaxReplyLine, deadline);
    if (!answer.ok() && !written.ok()) return written;
    if (answer.code() == Code::kNotFound) {
      return Status(Code::kInterrupted, "the daemon ended before it answered. See its log");
    }
    TRY(answer);
    ASSIGN_OR_RETURN(const Reply reply, DecodeReply(answer.value()));
    switch (reply.kind) {
      case Reply::Kind::kProgress:
        TRY(sink.Progress(reply.progress));
        break;
      case Reply::Kind::kItem:
        TRY(sink.Item(reply.json));
        break;
      case Reply::Kind::kData: {
        ASSIGN_OR_RETURN(const Bytes bytes, channel.ReadExactly(reply.data_bytes, deadline));
        TRY(sink.Data(bytes));
        break;
      }
      case Reply::Kind::kResult:
        return reply.json;
      case Reply::Kind::kError:
        return reply.error;
    }
  }
}

}  // namespace memoirfs::daemon
