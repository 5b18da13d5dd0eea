#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "store/base/json.h"
#include "store/base/json_writer.h"
#include "store/chain/record.h"
#include "store/chain/record_format.h"

namespace memoirfs::chain {
namespace {

// Reads members of one JSON object. The first member that is not what it must be is kept as the
// failure, which nested readers share; after it getters return zero values.
class Members {
 public:
  Members(const Json& object, std::string where, Status* failure)
      : object_(object), where_(std::move(where)), failure_(failure) {}

  // The member, or null when there is none.
  const Json* Find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() ? nullptr : &*it;
  }
  // A member that must be an object.
  Members Object(const char* key) const {
    static const Json kEmpty = Json::object();
    const Json* member = Find(key);
    if (member != nullptr && member->is_object()) return {*member, where_ + key + ".", failure_};
    Refuse(key, "an object");
    return {kEmpty, where_, failure_};
  }
  // 0 when absent.
  template <typename T>
  T Integer(const char* key) const {
    const Json* member = Find(key);
    if (member == nullptr) return 0;
    using Limits = std::numeric_limits<T>;
    constexpr auto kLeast = static_cast<int64_t>(Limits::min());
    constexpr uint64_t kMost = std::min<uint64_t>(kMaxJsonInteger, Limits::max());
    const bool fits = member->is_number_unsigned()
                          ? member->get<uint64_t>() <= kMost
                          : member->is_number_integer() && member->get<int64_t>() >= kLeast &&
                                member->get<int64_t>() <= static_cast<int64_t>(kMost);
    if (!fits) return Refuse(key, "an integer in its range"), T{0};
    return static_cast<T>(member->get<int64_t>());
  }
  // Empty when absent.
  std::string String(const char* key) const {
    const Json* member = Find(key);
    if (member == nullptr) return {};
    if (!member->is_string()) return Refuse(key, "a string"), std::string();
    return member->get_ref<const std::string&>();
  }
  // A time as text of an integer; 0 when absent.
  Nanos Time(const char* key) const {
    const std::string text = String(key);
    if (text.empty() && Find(key) == nullptr) return 0;
    Nanos time = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
    if (error != std::errc() || end != text.data() + text.size()) {
      Refuse(key, "nanoseconds as text");
    }
    return time;
  }
  Digest Hash(const char* key) const {
    const Result<Digest> digest = Digest::FromHex(String(key));
    if (!digest.ok()) return Refuse(key, "64 lower-case hex digits"), Digest{};
    return *digest;
  }
  bool Flag(const char* key) const {
    const Json* member = Find(key);
    if (member == nullptr) return false;
    if (!member->is_boolean()) return Refuse(key, "true or false"), false;
    return member->get<bool>();
  }
  void Refuse(const char* key, std::string_view expected) const {
    if (!failure_->ok()) return;
    *failure_ =
        Status(Code::kCorrupt, "record: " + where_ + key + " is not " + std::string(expected));
  }

 private:
  const Json& object_;
  const std::string where_;
  Status* const failure_;
};

std::optional<ContentId> ReadContent(const Members& fs, const char* key) {
  if (fs.Find(key) == nullptr) return std::nullopt;
  const Members members = fs.Object(key);
  ContentId id;
  id.digest = members.Hash("digest");
  id.size = members.Integer<uint64_t>("size");
  const std::string kind = members.String("kind");
  if (kind == kKindTree) {
    id.kind = ContentKind::kTree;
  } else if (kind != kKindFlat) {
    members.Refuse("kind", "\"flat\" or \"tree\"");
  }
  return id;
}

std::optional<Attributes> ReadAttributes(const Members& fs) {
  if (fs.Find("attributes") == nullptr) return std::nullopt;
  const Members members = fs.Object("attributes");
  Attributes attributes;
  attributes.mode = members.Integer<uint32_t>("mode");
  attributes.uid = members.Integer<uint32_t>("uid");
  attributes.gid = members.Integer<uint32_t>("gid");
  attributes.rdev = members.Integer<uint64_t>("rdev");
  attributes.atime = members.Time("atime");
  attributes.mtime = members.Time("mtime");
  attributes.ctime = members.Time("ctime");
  attributes.btime = members.Time("btime");
  return attributes;
}

Actor ReadActor(const Members& fs) {
  if (fs.Find("actor") == nullptr) return {};
  const Members members = fs.Object("actor");
  Actor actor;
  actor.uid = members.Integer<uint32_t>("uid");
  actor.gid = members.Integer<uint32_t>("gid");
  actor.pid = members.Integer<int32_t>("pid");
  actor.comm = members.String("comm");
  return actor;
}

std::string ReadDetail(const Members& fs) {
  const Json* detail = fs.Find("detail");
  if (detail == nullptr) return {};
  if (!detail->is_object()) return fs.Refuse("detail", "an object"), std::string();
  const Result<std::string> canonical = Canonicalize(*detail);
  if (!canonical.ok()) return fs.Refuse("detail", "canonical"), std::string();
  return *canonical;
}

Change ReadChange(const Members& fs) {
  Change change;
  if (const std::optional<Op> op = OpOfName(fs.String("op"))) {
    change.op = *op;
  } else {
    fs.Refuse("op", "an operation that this version knows");
  }
  change.ino = InodeId(fs.Integer<uint64_t>("ino"));
  change.parent = InodeId(fs.Integer<uint64_t>("parent"));
  change.name = fs.String("name");
  change.new_parent = InodeId(fs.Integer<uint64_t>("new_parent"));
  change.new_name = fs.String("new_name");
  if (fs.Find("replaced") != nullptr) change.replaced = InodeId(fs.Integer<uint64_t>("replaced"));
  change.exchange = fs.Flag("exchange");
  change.cookie = Cookie(fs.Integer<uint64_t>("cookie"));
  change.other_cookie = Cookie(fs.Integer<uint64_t>("other_cookie"));
  change.attributes = ReadAttributes(fs);
  change.content = ReadContent(fs, "content");
  change.replaced_content = ReadContent(fs, "replaced_content");
  change.xattr_name = fs.String("xattr_name");
  change.path = fs.String("path");
  change.detail = ReadDetail(fs);
  change.actor = ReadActor(fs);
  return change;
}

Status CheckHash(Json record, const ParsedRecord& parsed) {
  record["integrity"].erase("hash");
  const Result<std::string> canonical = Canonicalize(record);
  if (!canonical.ok()) return Status(Code::kCorrupt, "record: " + canonical.status().message());
  const Digest recomputed = Sha256::Of(*canonical);
  if (recomputed == parsed.hash) return {};
  return Status(Code::kCorrupt, "record " + std::to_string(parsed.seq.value) + ": hash " +
                                    parsed.hash.ToHex() + " does not match recomputed " +
                                    recomputed.ToHex());
}

}  // namespace

Result<ParsedRecord> ParseRecord(std::string_view line) {
  Result<Json> json = ParseJson(line, kMaxRecordDepth);
  if (!json.ok()) return Status(Code::kCorrupt, "record: " + json.status().message());
  if (!json->is_object()) return Status(Code::kCorrupt, "record: not a JSON object");
  Status failure;
  const Members record(*json, "", &failure);
  const Members fs = record.Object("fs");
  const Members integrity = record.Object("integrity");
  if (failure.ok() && fs.Integer<uint64_t>("v") != kRecordVersion) {
    return Status(Code::kUnknownFormat, "record: fs.v is not 1: made by a newer version");
  }
  ParsedRecord parsed;
  parsed.stream = StreamId(fs.Integer<uint32_t>("stream"));
  parsed.seq = Seq(fs.Integer<uint64_t>("seq"));
  if (parsed.seq.value == 0) fs.Refuse("seq", "1 or more");
  parsed.prev_hash = integrity.Hash("prev_hash");
  parsed.hash = integrity.Hash("hash");
  parsed.ts_text = record.String("ts");
  parsed.agent = record.Object("agent").String("id");
  parsed.subject = record.Object("subject").String("id");
  parsed.session_id = record.String("session_id");
  parsed.change = ReadChange(fs);
  if (const Result<Nanos> ts = ParseRfc3339(parsed.ts_text); ts.ok()) {
    parsed.ts = *ts;
  } else {
    record.Refuse("ts", "a time");
  }
  TRY(failure);
  TRY(CheckHash(std::move(*json), parsed));
  return parsed;
}

}  // namespace memoirfs::chain
