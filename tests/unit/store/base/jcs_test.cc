#include <catch2/catch.hpp>
#include <cmath>

#include "store/base/digest.h"
#include "store/base/json.h"
#include "tests/support/golden.h"

using memoirfs::CanonicalAscii;
using memoirfs::Canonicalize;
using memoirfs::Code;
using memoirfs::Json;
using memoirfs::ParseJson;
using memoirfs::Result;
using memoirfs::Sha256;

namespace {

Result<std::string> CanonicalOf(const std::string& text) {
  ASSIGN_OR_RETURN(const Json value, ParseJson(text));
  return Canonicalize(value);
}

std::string Canonical(const std::string& text) { return CanonicalOf(text).value(); }

// On integers beyond 2^53 - 1 implementations disagree, so that a hash over one means nothing;
// this one refuses them, the implementation that made the vectors writes all their digits.
bool IsBeyondExactIntegers(const Json& vector) {
  return vector["json"] == "123456789012345678901234567890";
}

}  // namespace

TEST_CASE("canonical forms and hashes are those of the vectors") {
  const std::vector<std::string> lines =
      memoirfs::test::GoldenLines("runtime-record/canon_vectors.jsonl");
  REQUIRE(lines.size() == 19);
  for (const std::string& line : lines) {
    const Json vector = ParseJson(line).value();
    const Result<std::string> canonical = CanonicalOf(vector["json"]);
    INFO(vector["json"]);
    if (vector["canon"].is_null() || IsBeyondExactIntegers(vector)) {
      CHECK(canonical.code() == Code::kInvalidArgument);
      continue;
    }
    REQUIRE(canonical.ok());
    CHECK(*canonical == vector["canon"]);
    CHECK(Sha256::Of(*canonical).ToHex() == vector["sha256"]);
    CHECK("sha256:" + Sha256::Of(*canonical).ToHex() == vector["input_hash"]);
  }
}

TEST_CASE("numbers are integers of at most 2^53 - 1, however they are written") {
  CHECK(Canonical("1.0") == "1");
  CHECK(Canonical("-0.0") == "0");
  CHECK(Canonical("-0") == "0");
  CHECK(Canonical("1E3") == "1000");
  CHECK(Canonical("9007199254740991") == "9007199254740991");
  CHECK(Canonical("-9007199254740991.0") == "-9007199254740991");
  for (const char* text : {"9007199254740992", "-9007199254740992", "18446744073709551615",
                           "9007199254740993.0", "1e16", "0.1", "-1.5", "1e-7", "1e300"}) {
    INFO(text);
    CHECK(CanonicalOf(text).code() == Code::kInvalidArgument);
  }
  CHECK(Canonicalize(Json(std::nan(""))).code() == Code::kInvalidArgument);
  CHECK(Canonicalize(Json(HUGE_VAL)).code() == Code::kInvalidArgument);
}

TEST_CASE("keys are sorted by UTF-16 code units") {
  CHECK(Canonical(R"({"b":1,"aa":2,"a":3,"":4})") == R"({"":4,"a":3,"aa":2,"b":1})");
  // U+1F600 is D83D DE00 in UTF-16: before U+E000, though behind it in UTF-8.
  CHECK(Canonical(R"({"\ue000":1,"\ud83d\ude00":2,"\ud7ff":3})") ==
        "{\"\ud7ff\":3,\"\U0001f600\":2,\"\ue000\":1}");
  CHECK(Canonical(R"({"x\uffff":1,"x\ud83d\ude00":2,"x":3})") ==
        "{\"x\":3,\"x\U0001f600\":2,\"x\uffff\":1}");
}

TEST_CASE("strings escape what RFC 8785 says and nothing else") {
  CHECK(Canonical(R"("\"\\\/\b\t\n\f\r\u0000\u001f\u007f")") ==
        "\"\\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\"");
  CHECK(Canonical(R"("\u1112\u1161\u11ab\ud55c")") == "\"\u1112\u1161\u11ab\ud55c\"");
}

TEST_CASE("a tree that was not parsed may still hold what has no canonical form") {
  CHECK(Canonicalize(Json("\xff")).code() == Code::kInvalidArgument);
  CHECK(Canonicalize(Json{{"\xff", 1}}).code() == Code::kInvalidArgument);
  CHECK(Canonicalize(Json::binary({1})).code() == Code::kInvalidArgument);
  CHECK(Canonicalize(Json(Json::value_t::discarded)).code() == Code::kInvalidArgument);
}

TEST_CASE("the ASCII form is the same value on one line of ASCII") {
  const Json value = ParseJson(R"({"한":"글\ud83d\ude00\u2028\u007f\u0080","a":"\n"})").value();
  const std::string ascii = CanonicalAscii(value).value();
  CHECK(ascii == "{\"a\":\"\\n\",\"\\ud55c\":\"\\uae00\\ud83d\\ude00\\u2028\x7f\\u0080\"}");
  CHECK(Canonical(ascii) == Canonicalize(value).value());
}
