#include "store/chain/verifier.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "store/base/json.h"
#include "tests/support/chain_samples.h"
#include "tests/support/golden.h"

using memoirfs::Json;
using memoirfs::ParseJson;
using memoirfs::chain::ChainVerifier;
using memoirfs::test::GoldenLines;
using memoirfs::test::SampleChain;

namespace {

using Lines = std::vector<std::string>;

const std::string kNoHash(64, '0');

ChainVerifier Verify(const Lines& lines) {
  ChainVerifier verifier;
  for (const std::string& line : lines) verifier.Add(line);
  return verifier;
}

ChainVerifier VerifyGolden(const std::string& name) {
  return Verify(GoldenLines("runtime-record/" + name + ".jsonl"));
}

Lines SampleLines(size_t count) {
  Lines lines;
  for (const auto& record : SampleChain(count)) lines.push_back(record.line);
  return lines;
}

bool Starts(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

// The problems of the first sample with `edit` done to it, its hash put right.
Lines SchemaProblems(const std::function<void(Json&)>& edit) {
  Json record = ParseJson(SampleLines(1)[0]).value();
  edit(record);
  record["integrity"].erase("hash");
  record["integrity"]["hash"] =
      memoirfs::Sha256::Of(memoirfs::Canonicalize(record).value()).ToHex();
  return Verify({record.dump()}).problems();
}

}  // namespace

TEST_CASE("valid chains of another recorder are valid, in any order of members") {
  for (const char* name : {"t_valid", "t_valid_field_order_reversed"}) {
    const ChainVerifier verifier = VerifyGolden(name);
    CHECK(verifier.problems() == Lines{});
    CHECK(verifier.count() == 6);
    CHECK(verifier.head().ToHex() ==
          "64232790f2105741019eb09bef39e591e3579f7d4e5147ed127def33d9b2e6d1");
    CHECK(verifier.unresolved_parents() == 0);
  }
}

TEST_CASE("an edited record breaks its chain, and what follows is not judged") {
  const ChainVerifier verifier = VerifyGolden("t_edit_mid");
  CHECK_FALSE(verifier.chain_intact());
  REQUIRE(verifier.problems().size() == 2);
  CHECK(verifier.problems()[0].find(": chain: hash ") != std::string::npos);
  CHECK(verifier.problems()[0].find(" does not match recomputed ") != std::string::npos);
  CHECK(Starts(verifier.problems()[1], "chain: record "));
  CHECK(verifier.problems()[1].find("onward is not verifiable") != std::string::npos);
}

TEST_CASE("a chain without its tail is a chain: only a witness knows") {
  CHECK(VerifyGolden("t_drop_tail").intact());
  CHECK(VerifyGolden("t_drop_and_reseal").intact());
}

TEST_CASE("a parent that is not in the chain is counted and is no problem") {
  const ChainVerifier verifier = VerifyGolden("t_orphan_parent");
  CHECK(verifier.intact());
  CHECK(verifier.parent_links() == 1);
  CHECK(verifier.unresolved_parents() == 1);
}

TEST_CASE("records that do not fit the schema are reported, their chain is intact") {
  const ChainVerifier verifier = VerifyGolden("t_schema_bad_chain_ok");
  CHECK(verifier.chain_intact());
  REQUIRE(verifier.problems().size() == 2);
  CHECK(Starts(verifier.problems()[0], "record 2: schema: record.severity: \"WEIRD\""));
  CHECK(verifier.problems()[1] ==
        "record 3: schema: record: missing required field \"session_id\"");
}

TEST_CASE("blank lines are no records") {
  const ChainVerifier verifier = VerifyGolden("t_empty");
  CHECK(verifier.count() == 0);
  CHECK(verifier.intact());
  CHECK(verifier.head().IsZero());
}

TEST_CASE("our own chain is valid, with other line ends too") {
  Lines lines = SampleLines(50);
  CHECK(Verify(lines).problems() == Lines{});
  for (std::string& line : lines) line += '\r';
  lines.insert(lines.begin() + 7, "  ");
  CHECK(Verify(lines).problems() == Lines{});
}

TEST_CASE("a dropped, swapped, repeated or inserted record breaks the chain where it stands") {
  const Lines lines = SampleLines(10);
  Lines dropped = lines;
  dropped.erase(dropped.begin() + 4);
  CHECK(Starts(Verify(dropped).problems().at(0), "record 5: chain: prev_hash "));
  Lines swapped = lines;
  std::swap(swapped[4], swapped[5]);
  CHECK(Starts(Verify(swapped).problems().at(0), "record 5: chain: prev_hash "));
  Lines repeated = lines;
  repeated.insert(repeated.begin() + 4, lines[3]);
  CHECK(Starts(Verify(repeated).problems().at(0), "record 5: chain: prev_hash "));
  Lines headless(lines.begin() + 1, lines.end());
  CHECK(Starts(Verify(headless).problems().at(0),
               "record 1: chain: prev_hash " +
                   ParseJson(lines[1]).value()["integrity"]["prev_hash"].get<std::string>() +
                   " does not match expected " + kNoHash));
}

TEST_CASE("a wrong prev_hash is reported with the hash that follows from the right one") {
  Json record = ParseJson(SampleLines(1)[0]).value();
  record["integrity"]["prev_hash"] = std::string(64, '1');
  const Lines problems = Verify({record.dump()}).problems();
  CHECK(problems == Lines{"record 1: chain: prev_hash " + std::string(64, '1') +
                          " does not match expected " + kNoHash});
}

TEST_CASE("one line is written about all that follows a break") {
  Lines lines = SampleLines(10);
  lines[2] = "{}";
  const Lines problems = Verify(lines).problems();
  CHECK(std::count_if(problems.begin(), problems.end(), [](const std::string& text) {
          return text.find("onward is not verifiable") != std::string::npos;
        }) == 1);
  CHECK(Starts(problems.back(), "chain: record 4 onward is not verifiable"));
}

TEST_CASE("lines that are no records are problems, never a crash") {
  for (const char* line :
       {"x", "[]", "1", "null", "\"a\"", "{}", R"({"integrity":null})", R"({"integrity":[]})",
        R"({"integrity":{}})", R"({"a":1,"a":2})", R"({"a":"\ud800","integrity":{}})",
        R"({"a":1.5,"integrity":{"hash":1,"prev_hash":null}})", "\xef\xbb\xbf{}", "\xff"}) {
    INFO(line);
    const ChainVerifier verifier = Verify({line});
    CHECK(verifier.count() == 1);
    CHECK_FALSE(verifier.intact());
    CHECK_FALSE(verifier.chain_intact());
  }
  CHECK(Starts(Verify({"x"}).problems().at(0), "record 1: not valid JSON: "));
}

TEST_CASE("problems are kept up to a hundred") {
  CHECK(Verify(Lines(1000, "x")).problems().size() == 100);
  CHECK(Verify(Lines(1000, "x")).count() == 1000);
}

TEST_CASE("the schema's types, constants, choices and required members are checked") {
  CHECK(SchemaProblems([](Json& r) { r["anything"] = Json{{"x", {1, 2}}}; }) == Lines{});
  CHECK(SchemaProblems([](Json& r) { r["schema_version"] = "0.2"; }) ==
        Lines{"record 1: schema: record.schema_version: expected \"0.1\", got \"0.2\""});
  CHECK(SchemaProblems([](Json& r) { r["action"].erase("category"); }) ==
        Lines{"record 1: schema: record.action: missing required field \"category\""});
  CHECK(SchemaProblems([](Json& r) { r["ts"] = 5; }) ==
        Lines{"record 1: schema: record.ts: expected string, got number"});
  CHECK(SchemaProblems([](Json& r) {
          r["framework_tags"] = Json::array({"a", 1});
        }) == Lines{"record 1: schema: record.framework_tags[1]: expected string, got number"});
  CHECK(SchemaProblems([](Json& r) {
          r["findings"] = Json::array({Json{{"type", "ssn"}}});
        }) == Lines{"record 1: schema: record.findings[0]: missing required field \"severity\""});
  CHECK(SchemaProblems([](Json& r) {
          r["data"] = Json{{"cross_region", true}};
        }) == Lines{"record 1: schema: record.data.cross_region: expected number, got boolean"});
  CHECK(SchemaProblems([](Json& r) { r["source"]["capture"] = "guessed"; }).size() == 1);
  CHECK(SchemaProblems([](Json& r) { r["outcome"] = nullptr; }).size() == 1);
}
