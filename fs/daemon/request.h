#pragma once

// What goes over the control socket. The client sends one line, a Request; the daemon answers with
// lines: any number of progress, item and data lines, then one result or error. A data line says
// how many raw bytes follow it. Every line is a JSON object; lengths are limited on both sides.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/status.h"
#include "store/volume/verify.h"

namespace memoirfs::daemon {

inline constexpr size_t kMaxRequestBytes = size_t{64} * 1024;
inline constexpr size_t kMaxReplyLine = 8U << 20;
inline constexpr size_t kMaxDataBytes = 1U << 20;

enum class Operation {
  kStatus,
  kMount,
  kUmount,
  kVerify,
  kLog,
  kCat,
  kAgentAdd,
  kAgentList,
  kAgentRemove,
  kFsck,
  kSync,
  kStop,
};

std::string_view OperationName(Operation operation);

// One request; which members an operation uses is said where it is handled.
struct Request {
  Operation operation{};
  std::optional<std::string> agent{};
  std::string mountpoint{};
  std::string path{};
  std::optional<uint64_t> seq{};
  uint64_t since_seq = 0;
  uint64_t limit = 0;  // 0: no limit
  volume::VerifyLevel level = volume::VerifyLevel::kObjects;
  bool allow_other = false;
  bool read_only = false;
  bool lazy = false;
  bool purge = false;
  bool repair = false;
};

// Without '\n'. Strings that are not UTF-8 are kInvalidArgument.
Result<std::string> EncodeRequest(const Request& request);
// kInvalidArgument with what is wrong; members that are not known are ignored.
Result<Request> DecodeRequest(std::string_view line);

std::string_view LevelName(volume::VerifyLevel level);
Result<volume::VerifyLevel> LevelOfName(std::string_view name);

struct Reply {
  enum class Kind { kProgress, kItem, kData, kResult, kError };
  Kind kind{};
  volume::VerifyProgress progress{};  // kProgress
  std::string json{};                 // kItem, kResult: an object
  uint64_t data_bytes = 0;            // kData
  Status error{};                     // kError
};

std::string EncodeReply(const Reply& reply);  // without '\n'
Result<Reply> DecodeReply(std::string_view line);

// An error as the commands print it with --json, too: {"error":{code, errno, message}}.
std::string ErrorJson(const Status& status);

// Takes the parts of an answer that come before its result. A failure ends the request.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual Status Progress(const volume::VerifyProgress& progress) = 0;
  virtual Status Item(const std::string& json) = 0;
  virtual Status Data(ByteView bytes) = 0;
};

}  // namespace memoirfs::daemon
