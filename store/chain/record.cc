// A record is written straight into its canonical form: its members stand here in the order of
// RFC 8785, which is the order that the hash needs. The line is that text as ASCII with the hash
// put in, so a record is encoded once. FORMAT.md "Records" lists the members.

#include "store/chain/record.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "store/base/json.h"
#include "store/base/json_writer.h"
#include "store/chain/record_format.h"

namespace memoirfs::chain {
namespace {

struct OpFacts {
  Op op;
  std::string_view name;
  std::string_view category;  // of Runtime Records: changes of files, or the store's own keeping
};

constexpr char kRenamedFrom[] = "from";
constexpr std::string_view kSafety = "safety";
constexpr std::string_view kReliability = "reliability";

constexpr std::array kOps{
    OpFacts{Op::kGenesis, "genesis", kReliability},
    OpFacts{Op::kSession, "session", kReliability},
    OpFacts{Op::kPut, "put", kSafety},
    OpFacts{Op::kMkdir, "mkdir", kSafety},
    OpFacts{Op::kRmdir, "rmdir", kSafety},
    OpFacts{Op::kUnlink, "unlink", kSafety},
    OpFacts{Op::kRename, "rename", kSafety},
    OpFacts{Op::kLink, "link", kSafety},
    OpFacts{Op::kSymlink, "symlink", kSafety},
    OpFacts{Op::kAttr, "attr", kSafety},
    OpFacts{Op::kXattr, "xattr", kSafety},
    OpFacts{Op::kPull, "pull", kReliability},
    OpFacts{Op::kPush, "push", kReliability},
    OpFacts{Op::kSnapshot, "snapshot", kReliability},
    OpFacts{Op::kRestore, "restore", kReliability},
    OpFacts{Op::kRecover, "recover", kReliability},
    OpFacts{Op::kQuarantine, "quarantine", kReliability},
    OpFacts{Op::kRepair, "repair", kReliability},
    OpFacts{Op::kRetain, "retain", kReliability},
    OpFacts{Op::kEvent, "event", kReliability},
    OpFacts{Op::kCard, "card", kReliability},
};

constexpr bool OpsAreInOrder() {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  }
  return kOps.size() == static_cast<size_t>(Op::kCard) + 1;
}
static_assert(OpsAreInOrder());

const OpFacts& FactsOf(Op op) { return kOps[static_cast<size_t>(op)]; }

// The longest start of `text` with at most `max_units` UTF-16 code units: the measure of the
// strictest readers. Precondition: valid UTF-8.
std::string_view CutAtCharacter(std::string_view text, size_t max_units) {
  size_t units = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) == 0x80) continue;  // inside a character
    units += byte >= 0xf0 ? 2 : 1;
    if (units > max_units) return text.substr(0, i);
  }
  return text;
}

// A UUID of version 7 (RFC 9562): milliseconds, then random bits.
std::string NewRecordId(Nanos time) {
  Bytes raw = RandomBytes(16);
  const auto millis = static_cast<uint64_t>(std::max<Nanos>(time, 0) / 1'000'000);
  for (size_t i = 0; i < 6; ++i) raw[i] = static_cast<char>(millis >> (40 - 8 * i));
  raw[6] = static_cast<char>((raw[6] & 0x0f) | 0x70);
  raw[8] = static_cast<char>((raw[8] & 0x3f) | 0x80);
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (size_t i = 0; i < raw.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(raw[i]);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

void WriteNonZero(CanonicalWriter& out, std::string_view key, uint64_t value) {
  if (value != 0) out.Unsigned(key, value);
}

void WriteNonEmpty(CanonicalWriter& out, std::string_view key, std::string_view value) {
  if (!value.empty()) out.String(key, value);
}

void WriteTime(CanonicalWriter& out, std::string_view key, Nanos time) {
  if (time != 0) out.String(key, std::to_string(time));
}

void WriteAction(CanonicalWriter& out, const Change& change) {
  const OpFacts& facts = FactsOf(change.op);
  out.BeginObject("action");
  out.String("category", facts.category);
  const std::string& shown = change.path.empty() ? change.name : change.path;
  if (change.content || !shown.empty()) {
    out.BeginObject("input");
    if (change.content) out.String("hash", kHashPrefix + change.content->digest.ToHex());
    WriteNonEmpty(out, "summary", CutAtCharacter(shown, kMaxSummary));
    out.EndObject();
  }
  out.String("tool", std::string(kToolPrefix).append(facts.name));
  out.String("type", "write");
  out.EndObject();
}

void WriteActor(CanonicalWriter& out, const Actor& actor) {
  if (actor == Actor{}) return;
  out.BeginObject("actor");
  WriteNonEmpty(out, "comm", actor.comm);
  out.Unsigned("gid", actor.gid);
  if (actor.pid != 0) out.Signed("pid", actor.pid);
  out.Unsigned("uid", actor.uid);
  out.EndObject();
}

void WriteAttributes(CanonicalWriter& out, const Attributes& attributes) {
  out.BeginObject("attributes");
  WriteTime(out, "atime", attributes.atime);
  WriteTime(out, "btime", attributes.btime);
  WriteTime(out, "ctime", attributes.ctime);
  WriteNonZero(out, "gid", attributes.gid);
  WriteNonZero(out, "mode", attributes.mode);
  WriteTime(out, "mtime", attributes.mtime);
  WriteNonZero(out, "rdev", attributes.rdev);
  WriteNonZero(out, "uid", attributes.uid);
  out.EndObject();
}

void WriteContent(CanonicalWriter& out, std::string_view key,
                  const std::optional<ContentId>& content) {
  if (!content) return;
  out.BeginObject(key);
  out.String("digest", content->digest.ToHex());
  out.String("kind", content->kind == ContentKind::kTree ? kKindTree : kKindFlat);
  out.Unsigned("size", content->size);
  out.EndObject();
}

// `detail` is canonical, or empty.
void WriteChange(CanonicalWriter& out, StreamId stream, Seq seq, const Change& change,
                 std::string_view detail) {
  out.BeginObject("fs");
  WriteActor(out, change.actor);
  if (change.attributes) WriteAttributes(out, *change.attributes);
  WriteContent(out, "content", change.content);
  WriteNonZero(out, "cookie", change.cookie.value);
  if (!detail.empty()) out.Raw("detail", detail);
  if (change.exchange) out.True("exchange");
  WriteNonZero(out, "ino", change.ino.value);
  WriteNonEmpty(out, "name", change.name);
  WriteNonEmpty(out, "new_name", change.new_name);
  WriteNonZero(out, "new_parent", change.new_parent.value);
  out.String("op", OpName(change.op));
  WriteNonZero(out, "other_cookie", change.other_cookie.value);
  WriteNonZero(out, "parent", change.parent.value);
  WriteNonEmpty(out, "path", change.path);
  if (change.replaced) out.Unsigned("replaced", change.replaced->value);
  WriteContent(out, "replaced_content", change.replaced_content);
  out.Unsigned("seq", seq.value);
  out.Unsigned("stream", stream.value);
  out.Unsigned("v", kRecordVersion);
  WriteNonEmpty(out, "xattr_name", change.xattr_name);
  out.EndObject();
}

// Returns where the hash goes.
size_t WriteIntegrity(CanonicalWriter& out, const Digest& prev_hash) {
  out.BeginObject("integrity");
  out.String("alg", kHashAlgorithm);
  out.String("canon", kCanonicalization);
  const size_t hash_at = out.size();
  out.String("prev_hash", prev_hash.ToHex());
  out.EndObject();
  return hash_at;
}

void WriteOrigin(CanonicalWriter& out, const RecordContext& context, Nanos ts) {
  out.BeginObject("outcome");
  out.String("status", "ok");
  out.EndObject();
  out.String("record_id", NewRecordId(ts));
  out.String("schema_version", kSchemaVersion);
  out.String("session_id", context.session_id);
  out.BeginObject("source");
  out.String("adapter", "memoirfs");
  out.String("capture", "captured");
  out.EndObject();
  out.BeginObject("subject");
  out.String("id", SubjectId(context));
  out.String("name", context.agent);
  out.EndObject();
  out.String("ts", FormatRfc3339(ts));
}

Result<std::string> CanonicalDetail(const std::string& detail) {
  if (detail.empty()) return std::string();
  Result<Json> parsed = ParseJson(detail, kMaxDetailDepth);
  if (!parsed.ok()) return parsed.status().WithContext("detail of a record");
  if (!parsed->is_object()) {
    return Status(Code::kInvalidArgument, "detail of a record: not a JSON object");
  }
  Result<std::string> canonical = Canonicalize(*parsed);
  if (!canonical.ok()) return canonical.status().WithContext("detail of a record");
  return canonical;
}

std::string LineOf(std::string_view canonical, size_t hash_at, const Digest& hash) {
  std::string line;
  line.reserve(canonical.size() + 128);
  AppendAsAscii(canonical.substr(0, hash_at), &line);
  line.append(",\"hash\":\"").append(hash.ToHex()).append("\"");
  AppendAsAscii(canonical.substr(hash_at), &line);
  return line;
}

}  // namespace

std::string_view OpName(Op op) { return FactsOf(op).name; }

std::optional<Op> OpOfName(std::string_view name) {
  for (const OpFacts& facts : kOps) {
    if (facts.name == name) return facts.op;
  }
  return std::nullopt;
}

std::string RenameSource(const Change& change) {
  if (!change.detail.empty()) {
    const Result<Json> detail = ParseJson(change.detail, kMaxDetailDepth);
    if (detail.ok() && detail->is_object()) return TextOf(*detail, kRenamedFrom);
  }
  const size_t slash = change.path.rfind('/');
  const bool same_directory = change.parent == change.new_parent && slash != std::string::npos;
  return (same_directory ? change.path.substr(0, slash + 1) : "") + change.name;
}

std::string RenameDetail(const std::string& source) { return Json{{kRenamedFrom, source}}.dump(); }

std::string SubjectId(const RecordContext& context) {
  return "memoirfs." + context.store_id + "." + context.agent;
}

Result<SealedRecord> SealRecord(const RecordContext& context, const Head& head,
                                const Change& change, Nanos now) {
  ASSIGN_OR_RETURN(const std::string detail, CanonicalDetail(change.detail));
  SealedRecord record;
  record.seq = Seq(head.seq.value + 1);
  record.ts = std::max(now, head.ts);
  CanonicalWriter out;
  WriteAction(out, change);
  out.BeginObject("agent");
  out.String("id", context.agent);
  out.EndObject();
  WriteChange(out, context.stream, record.seq, change, detail);
  const size_t hash_at = WriteIntegrity(out, head.hash);
  WriteOrigin(out, context, record.ts);
  Result<std::string> canonical = out.Finish();
  if (!canonical.ok()) return canonical.status().WithContext("record");
  record.hash = Sha256::Of(*canonical);
  record.line = LineOf(*canonical, hash_at, record.hash);
  if (record.line.size() > kMaxRecordBytes) {
    return Status(Code::kTooLarge, "a record of " + std::to_string(record.line.size()) +
                                       " bytes; at most " + std::to_string(kMaxRecordBytes));
  }
  return record;
}

}  // namespace memoirfs::chain
