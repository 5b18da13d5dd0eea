#include "fs/daemon/request.h"

#include <array>

#include "store/base/file_name.h"
#include "store/base/json.h"

namespace memoirfs::daemon {
namespace {

constexpr std::array<std::string_view, 12> kOperationNames = {
    "status",    "mount",      "umount",   "verify", "log",  "cat",
    "agent-add", "agent-list", "agent-rm", "fsck",   "sync", "stop"};
constexpr std::array<std::string_view, 4> kLevelNames = {"heads", "chains", "index", "objects"};
constexpr int kMaxDepth = 32;

Status Wrong(std::string_view member) {
  return Status(Code::kInvalidArgument,
                "request: '" + std::string(member) + "' is not as expected");
}

Status Read(const Json& object, const char* name, std::string* out) {
  const auto it = object.find(name);
  if (it == object.end()) return {};
  if (!it->is_string()) return Wrong(name);
  *out = it->get<std::string>();
  return out->find('\0') == std::string::npos ? Status() : Wrong(name);
}

Status Read(const Json& object, const char* name, bool* out) {
  const auto it = object.find(name);
  if (it == object.end()) return {};
  if (!it->is_boolean()) return Wrong(name);
  *out = it->get<bool>();
  return {};
}

Status Read(const Json& object, const char* name, uint64_t* out) {
  const auto it = object.find(name);
  if (it == object.end()) return {};
  if (!it->is_number_unsigned()) return Wrong(name);
  *out = it->get<uint64_t>();
  return {};
}

template <typename T>
Status Read(const Json& object, const char* name, std::optional<T>* out) {
  if (!object.contains(name)) return {};
  return Read(object, name, &out->emplace());
}

template <size_t N>
std::optional<size_t> IndexOf(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

Result<Json> ParseObject(std::string_view line) {
  ASSIGN_OR_RETURN(Json json, ParseJson(line, kMaxDepth));
  if (!json.is_object()) return Status(Code::kInvalidArgument, "not a JSON object");
  return json;
}

// Of an error: "ok" is none, and no name of one.
Code CodeOfName(std::string_view name) {
  for (int i = static_cast<int>(Code::kOk) + 1; i <= static_cast<int>(Code::kInternal); ++i) {
    if (CodeName(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  }
  return Code::kInternal;
}

Result<Reply> DecodeError(const Json& error) {
  std::string code;
  std::string message;
  uint64_t number = 0;
  if (!error.is_object()) return Wrong("error");
  TRY(Read(error, "code", &code));
  TRY(Read(error, "message", &message));
  TRY(Read(error, "errno", &number));
  Reply reply{.kind = Reply::Kind::kError};
  reply.error = Status(CodeOfName(code), message, static_cast<int>(number & 0xfff));
  return reply;
}

Result<Reply> DecodeProgress(const Json& progress) {
  Reply reply{.kind = Reply::Kind::kProgress};
  if (!progress.is_object()) return Wrong("progress");
  TRY(Read(progress, "what", &reply.progress.what));
  TRY(Read(progress, "done", &reply.progress.done));
  TRY(Read(progress, "total", &reply.progress.total));
  return reply;
}

}  // namespace

std::string_view OperationName(Operation operation) {
  return kOperationNames[static_cast<size_t>(operation)];
}

std::string_view LevelName(volume::VerifyLevel level) {
  return kLevelNames[static_cast<size_t>(level)];
}

Result<volume::VerifyLevel> LevelOfName(std::string_view name) {
  if (const auto index = IndexOf(kLevelNames, name)) {
    return static_cast<volume::VerifyLevel>(*index);
  }
  return Status(Code::kInvalidArgument, "a level is one of heads, chains, index, objects; not: '" +
                                            std::string(name) + "'");
}

Result<std::string> EncodeRequest(const Request& request) {
  for (const std::string* text : {&request.mountpoint, &request.path}) {
    if (!IsValidUtf8(*text)) {
      return Status(Code::kIllegalName, "not valid UTF-8: '" + *text + "'");
    }
  }
  Json json = {{"op", OperationName(request.operation)},
               {"mountpoint", request.mountpoint},
               {"path", request.path},
               {"since_seq", request.since_seq},
               {"limit", request.limit},
               {"level", LevelName(request.level)},
               {"allow_other", request.allow_other},
               {"read_only", request.read_only},
               {"lazy", request.lazy},
               {"purge", request.purge},
               {"repair", request.repair}};
  if (request.agent) json["agent"] = *request.agent;
  if (request.seq) json["seq"] = *request.seq;
  std::string line = DumpJson(json);
  if (line.size() >= kMaxRequestBytes) return Status(Code::kNameTooLong, "the request is too long");
  return line;
}

Result<Request> DecodeRequest(std::string_view line) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  std::string operation;
  std::string level(LevelName(volume::VerifyLevel::kObjects));
  Request request;
  TRY(Read(json, "op", &operation));
  TRY(Read(json, "agent", &request.agent));
  TRY(Read(json, "mountpoint", &request.mountpoint));
  TRY(Read(json, "path", &request.path));
  TRY(Read(json, "seq", &request.seq));
  TRY(Read(json, "since_seq", &request.since_seq));
  TRY(Read(json, "limit", &request.limit));
  TRY(Read(json, "level", &level));
  TRY(Read(json, "allow_other", &request.allow_other));
  TRY(Read(json, "read_only", &request.read_only));
  TRY(Read(json, "lazy", &request.lazy));
  TRY(Read(json, "purge", &request.purge));
  TRY(Read(json, "repair", &request.repair));
  ASSIGN_OR_RETURN(request.level, LevelOfName(level));
  const auto index = IndexOf(kOperationNames, operation);
  if (!index) return Wrong("op");
  request.operation = static_cast<Operation>(*index);
  return request;
}

std::string ErrorJson(const Status& status) {
  return DumpJson(Json{{"error",
                        {{"code", CodeName(status.code())},
                         {"errno", static_cast<uint64_t>(status.ToErrno())},
                         {"message", status.ToString()}}}});
}

std::string EncodeReply(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kProgress:
      return DumpJson(Json{{"progress",
                            {{"what", reply.progress.what},
                             {"done", reply.progress.done},
                             {"total", reply.progress.total}}}});
    case Reply::Kind::kItem:
      return "{\"item\":" + reply.json + "}";
    case Reply::Kind::kData:
      return DumpJson(Json{{"bytes", reply.data_bytes}});
    case Reply::Kind::kResult:
      return "{\"result\":" + reply.json + "}";
    case Reply::Kind::kError:
      return ErrorJson(reply.error);
  }
  return ErrorJson(Status(Code::kInternal, "a reply of no kind"));
}

Result<Reply> DecodeReply(std::string_view line) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  if (json.contains("error")) return DecodeError(json["error"]);
  if (json.contains("progress")) return DecodeProgress(json["progress"]);
  Reply reply;
  if (json.contains("bytes")) {
    reply.kind = Reply::Kind::kData;
    TRY(Read(json, "bytes", &reply.data_bytes));
    return reply.data_bytes <= kMaxDataBytes ? Result<Reply>(std::move(reply)) : Wrong("bytes");
  }
  const bool item = json.contains("item");
  if (!item && !json.contains("result")) return Status(Code::kInvalidArgument, "not a reply");
  reply.kind = item ? Reply::Kind::kItem : Reply::Kind::kResult;
  reply.json = DumpJson(item ? json["item"] : json["result"]);
  return reply;
}

}  // namespace memoirfs::daemon
