#include "store/base/json.h"
#include "store/chain/verifier.h"

namespace memoirfs::chain {
namespace {

constexpr size_t kMaxSubject = 200;

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json StateOf(const Checkpoint& checkpoint) {
  return Json{{"chain_root", checkpoint.chain_root.IsZero() ? Json(nullptr)
                                                            : Json(checkpoint.chain_root.ToHex())},
              {"count", checkpoint.count},
              {"head", checkpoint.head.ToHex()},
              {"subject", OrNull(checkpoint.subject)}};
}

Status Unfit(std::string_view what) {
  return Status(Code::kInvalidArgument, "not a checkpoint: " + std::string(what));
}

// The member as text; empty for null.
Result<std::string> TextOrNull(const Json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || member->is_null()) return std::string();
  if (!member->is_string()) return Unfit(std::string(key) + " is not text");
  return member->get<std::string>();
}

Result<Digest> HashOrNull(const Json& object, const char* key) {
  ASSIGN_OR_RETURN(const std::string text, TextOrNull(object, key));
  if (text.empty()) return Digest{};
  const Result<Digest> digest = Digest::FromHex(text);
  if (!digest.ok()) return Unfit(std::string(key) + " is not 64 lower-case hex digits");
  return digest;
}

}  // namespace

std::string Checkpoint::ToLine() const {
  Json line = StateOf(*this);
  line["ts"] = ts;
  return line.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<Checkpoint> Checkpoint::FromLine(std::string_view line) {
  const Result<Json> parsed = ParseJson(line);
  if (!parsed.ok()) return Unfit(parsed.status().message());
  if (!parsed->is_object()) return Unfit("not an object");
  Checkpoint checkpoint;
  ASSIGN_OR_RETURN(checkpoint.subject, TextOrNull(*parsed, "subject"));
  if (checkpoint.subject.size() > kMaxSubject) return Unfit("subject is longer than 200 bytes");
  ASSIGN_OR_RETURN(checkpoint.chain_root, HashOrNull(*parsed, "chain_root"));
  ASSIGN_OR_RETURN(checkpoint.head, HashOrNull(*parsed, "head"));
  ASSIGN_OR_RETURN(checkpoint.ts, TextOrNull(*parsed, "ts"));
  const auto count = parsed->find("count");
  if (count == parsed->end() || !count->is_number_unsigned()) {
    return Unfit("count is not an integer of 0 or more");
  }
  checkpoint.count = count->get<uint64_t>();
  if ((checkpoint.count == 0) != checkpoint.head.IsZero()) {
    return Unfit("head is zeros exactly when count is 0");
  }
  return checkpoint;
}

Result<Digest> Checkpoint::StateDigest() const {
  ASSIGN_OR_RETURN(const std::string canonical, Canonicalize(StateOf(*this)));
  return Sha256::Of(canonical);
}

}  // namespace memoirfs::chain
