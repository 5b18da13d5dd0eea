#include "store/chain/record.h"

#include <catch2/catch.hpp>
#include <functional>
#include <regex>

#include "store/base/json.h"
#include "tests/support/chain_samples.h"

using memoirfs::Canonicalize;
using memoirfs::Code;
using memoirfs::ContentId;
using memoirfs::ContentKind;
using memoirfs::Digest;
using memoirfs::InodeId;
using memoirfs::Json;
using memoirfs::ParseJson;
using memoirfs::Seq;
using memoirfs::Sha256;
using memoirfs::chain::Change;
using memoirfs::chain::Head;
using memoirfs::chain::Op;
using memoirfs::chain::OpName;
using memoirfs::chain::OpOfName;
using memoirfs::chain::ParsedRecord;
using memoirfs::chain::ParseRecord;
using memoirfs::chain::SealedRecord;
using memoirfs::chain::SealRecord;
using memoirfs::test::SampleChanges;
using memoirfs::test::SampleContext;

namespace {

constexpr memoirfs::Nanos kNow = 1'796'069'320'123'456'789;

SealedRecord Seal(const Change& change) {
  return SealRecord(SampleContext(), Head{}, change, kNow).value();
}

Json SealedJson(const Change& change) { return ParseJson(Seal(change).line).value(); }

Change PutChange() {
  Change change;
  change.op = Op::kPut;
  change.ino = InodeId(2);
  change.name = "notes.md";
  change.path = "dir/notes.md";
  change.content = ContentId{Sha256::Of("x"), 1, ContentKind::kFlat};
  return change;
}

Code CodeOf(const Change& change) {
  return SealRecord(SampleContext(), Head{}, change, kNow).code();
}

// A line whose hash fits what `edit` made of it.
std::string Resealed(const Change& change, const std::function<void(Json&)>& edit) {
  Json record = SealedJson(change);
  edit(record);
  record["integrity"].erase("hash");
  record["integrity"]["hash"] = Sha256::Of(Canonicalize(record).value()).ToHex();
  return record.dump(-1, ' ', true);
}

}  // namespace

TEST_CASE("operations have the names of the format") {
  for (int i = 0; i <= static_cast<int>(Op::kCard); ++i) {
    const auto op = static_cast<Op>(i);
    CHECK(OpOfName(OpName(op)) == op);
  }
  CHECK(OpName(Op::kGenesis) == "genesis");
  CHECK(OpName(Op::kCard) == "card");
  CHECK_FALSE(OpOfName("nothing").has_value());
}

TEST_CASE("a record of every operation is read back as it was sealed") {
  for (const Change& change : SampleChanges()) {
    const SealedRecord sealed = Seal(change);
    INFO(sealed.line);
    const ParsedRecord parsed = ParseRecord(sealed.line).value();
    Change expected = change;
    if (!change.detail.empty()) {
      expected.detail = Canonicalize(ParseJson(change.detail).value()).value();
    }
    CHECK(parsed.change == expected);
    CHECK(parsed.seq == Seq(1));
    CHECK(parsed.hash == sealed.hash);
    CHECK(parsed.prev_hash == Digest{});
    CHECK(parsed.ts == kNow);
    CHECK(parsed.ts_text == memoirfs::FormatRfc3339(kNow));
    CHECK(parsed.stream == SampleContext().stream);
    CHECK(parsed.agent == SampleContext().agent);
    CHECK(parsed.session_id == SampleContext().session_id);
  }
}

TEST_CASE("a line is canonical but for its ASCII, and its hash covers all but the hash") {
  for (const Change& change : SampleChanges()) {
    const SealedRecord sealed = Seal(change);
    Json record = ParseJson(sealed.line).value();
    CHECK(sealed.line == memoirfs::CanonicalAscii(record).value());
    CHECK(sealed.line.find_first_not_of([] {
      std::string ascii;
      for (char c = 0x20; c < 0x7f; ++c) ascii += c;
      return ascii;
    }()) == std::string::npos);
    record["integrity"].erase("hash");
    CHECK(Sha256::Of(Canonicalize(record).value()) == sealed.hash);
  }
}

TEST_CASE("a record has the members of a Runtime Record") {
  const Json record = SealedJson(PutChange());
  CHECK(record["schema_version"] == "0.1");
  CHECK(record["session_id"] == SampleContext().session_id);
  CHECK(record["ts"] == "2026-11-30T20:08:40.123456789Z");
  CHECK(record["subject"] ==
        Json{{"id", "memoirfs.0f8fad5b-d9cb-469f-a165-70867728950e.agent-1"}, {"name", "agent-1"}});
  CHECK(record["agent"] == Json{{"id", "agent-1"}});
  CHECK(record["action"] ==
        Json{{"type", "write"},
             {"category", "safety"},
             {"tool", "memoirfs.put"},
             {"input",
              {{"hash", "sha256:" + Sha256::Of("x").ToHex()}, {"summary", "dir/notes.md"}}}});
  CHECK(record["outcome"] == Json{{"status", "ok"}});
  CHECK(record["source"] == Json{{"adapter", "memoirfs"}, {"capture", "captured"}});
  CHECK(record["integrity"]["alg"] == "sha-256");
  CHECK(record["integrity"]["canon"] == "rfc8785");
  CHECK(record["integrity"]["prev_hash"] == std::string(64, '0'));
  CHECK(record["fs"]["v"] == 1);
  CHECK(record["fs"]["op"] == "put");
  CHECK_FALSE(record.contains("principal"));
}

TEST_CASE("record ids are UUIDs of version 7 and do not repeat") {
  const std::regex uuid("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  const std::string first = SealedJson(PutChange())["record_id"];
  const std::string second = SealedJson(PutChange())["record_id"];
  CHECK(std::regex_match(first, uuid));
  CHECK(first != second);
  CHECK(first.substr(0, 13) == "01a22e12-e5bb");  // kNow in milliseconds
}

TEST_CASE("members that say nothing are left out") {
  Change change;
  change.op = Op::kEvent;
  const Json record = SealedJson(change);
  CHECK(record["fs"] == Json{{"op", "event"}, {"seq", 1}, {"stream", 7}, {"v", 1}});
  CHECK_FALSE(record["action"].contains("input"));
}

TEST_CASE("times are text, so that no reader rounds them") {
  Change change = PutChange();
  change.attributes.emplace();
  change.attributes->mtime = -1;
  CHECK(SealedJson(change)["fs"]["attributes"] == Json{{"mtime", "-1"}});
}

TEST_CASE("a record follows its head, and time does not go back") {
  const Head head{Seq(41), Sha256::Of("previous"), kNow + 5};
  const SealedRecord sealed = SealRecord(SampleContext(), head, PutChange(), kNow).value();
  CHECK(sealed.seq == Seq(42));
  CHECK(sealed.ts == kNow + 5);
  const ParsedRecord parsed = ParseRecord(sealed.line).value();
  CHECK(parsed.prev_hash == head.hash);
  CHECK(parsed.ts == kNow + 5);
}

TEST_CASE("a summary is cut at a character, in the units of the strictest reader") {
  Change change = PutChange();
  change.path = std::string(199, 'a') + "\U0001f600" + "b";
  CHECK(SealedJson(change)["action"]["input"]["summary"] == std::string(199, 'a'));
  CHECK(SealedJson(change)["fs"]["path"] == change.path);
  change.path = std::string(198, 'a') + "\U0001f600" + "b";
  CHECK(SealedJson(change)["action"]["input"]["summary"] == std::string(198, 'a') + "\U0001f600");
  change.path.clear();
  CHECK(SealedJson(change)["action"]["input"]["summary"] == "notes.md");
}

TEST_CASE("numbers that readers would round are refused") {
  Change change = PutChange();
  change.content->size = 1ULL << 53;
  CHECK(CodeOf(change) == Code::kTooLarge);
  change.content->size = (1ULL << 53) - 1;
  CHECK(CodeOf(change) == Code::kOk);
  change.ino = InodeId(1ULL << 53);
  CHECK(CodeOf(change) == Code::kTooLarge);
}

TEST_CASE("text that is not UTF-8 is refused") {
  Change change = PutChange();
  change.actor.comm = "\xff";
  CHECK(CodeOf(change) == Code::kInvalidArgument);
  change = PutChange();
  change.name = "\xed\xa0\x80";
  CHECK(CodeOf(change) == Code::kInvalidArgument);
}

TEST_CASE("detail is an object of what has a canonical form, of bounded depth and length") {
  Change change = PutChange();
  for (const char* detail : {"{", "[]", "1", "null", R"({"a":1.5})", R"({"a":1,"a":2})",
                             R"({"a":9007199254740992})", R"({"a":"\ud800"})"}) {
    INFO(detail);
    change.detail = detail;
    CHECK(CodeOf(change) == Code::kInvalidArgument);
  }
  const auto nested = [](size_t levels) {
    return "{\"a\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  change.detail = nested(32);
  CHECK(ParseRecord(Seal(change).line).value().change.detail == change.detail);
  change.detail = nested(33);
  CHECK(CodeOf(change) == Code::kInvalidArgument);
  change.detail = "{\"a\":\"" + std::string(memoirfs::chain::kMaxRecordBytes, 'x') + "\"}";
  CHECK(CodeOf(change) == Code::kTooLarge);
}

TEST_CASE("a detail that looks like the record's own integrity is not taken for it") {
  Change change = PutChange();
  change.detail = R"({"integrity":{"alg":"sha-256","canon":"rfc8785","hash":"x","prev_hash":"y"}})";
  CHECK(ParseRecord(Seal(change).line).value().change.detail == change.detail);
}

TEST_CASE("every changed byte of a line is noticed") {
  const std::string line = Seal(PutChange()).line;
  for (size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    INFO(changed);
    // A digit of an escape or another spelling of the same value may change nothing: here is none.
    CHECK(ParseRecord(changed).code() != Code::kOk);
  }
}

TEST_CASE("a failure to parse says what was expected and found") {
  std::string line = Seal(PutChange()).line;
  line.replace(line.find("notes.md"), 5, "Notes");
  const memoirfs::Status status = ParseRecord(line).status();
  CHECK(status.code() == Code::kCorrupt);
  CHECK(status.message().find("record 1: hash ") == 0);
  CHECK(status.message().find("does not match recomputed") != std::string::npos);
  CHECK(ParseRecord("").code() == Code::kCorrupt);
  CHECK(ParseRecord("[]").code() == Code::kCorrupt);
  CHECK(ParseRecord("{}").code() == Code::kCorrupt);
}

TEST_CASE("members of the wrong type are corrupt, also under a hash that fits") {
  const auto code_after = [](const std::function<void(Json&)>& edit) {
    return ParseRecord(Resealed(PutChange(), edit)).code();
  };
  CHECK(code_after([](Json& r) { r["unknown"] = 1; }) == Code::kOk);
  CHECK(code_after([](Json& r) { r["fs"]["unknown"] = 1; }) == Code::kOk);
  CHECK(code_after([](Json& r) { r["fs"]["ino"] = "2"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["ino"] = -2; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["ino"] = 2.0; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["name"] = 1; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["op"] = "other"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"].erase("op"); }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"].erase("seq"); }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["stream"] = 1ULL << 32; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["exchange"] = 1; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["detail"] = "{}"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["content"] = "x"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["content"]["kind"] = "x"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["content"]["digest"] = "x"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) {
          r["fs"]["attributes"] = Json{{"mtime", "1x"}};
        }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["attributes"] = Json{{"mtime", 1}}; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["ts"] = "yesterday"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["agent"] = "x"; }) == Code::kCorrupt);
  CHECK(code_after([](Json& r) { r["fs"]["v"] = 2; }) == Code::kUnknownFormat);
}
