#include <algorithm>
#include <catch2/catch.hpp>

#include "store/base/json.h"
#include "store/chain/verifier.h"
#include "tests/support/golden.h"

using memoirfs::Code;
using memoirfs::Json;
using memoirfs::ParseJson;
using memoirfs::Sha256;
using memoirfs::chain::Checkpoint;
using memoirfs::test::GoldenLines;

TEST_CASE("checkpoints of another recorder are read, and written as the same value") {
  for (const std::string& line : GoldenLines("runtime-record/witness.jsonl")) {
    const Checkpoint checkpoint = Checkpoint::FromLine(line).value();
    CHECK(ParseJson(checkpoint.ToLine()).value() == ParseJson(line).value());
    CHECK(Checkpoint::FromLine(checkpoint.ToLine()).value() == checkpoint);
  }
}

TEST_CASE("the digest for a time stamp is that of the vector") {
  std::string text;
  for (const std::string& line : GoldenLines("runtime-record/serve_anchor_vectors.json")) {
    text += line;
  }
  const Json vectors = ParseJson(text).value();
  Checkpoint checkpoint = Checkpoint::FromLine(vectors["checkpoint"].dump()).value();
  checkpoint.ts = "any time";
  CHECK(checkpoint.StateDigest().value().ToHex() == vectors["checkpoint_digest"]);
}

TEST_CASE("a checkpoint of an empty chain has nulls and zeros") {
  const Checkpoint empty;
  CHECK(ParseJson(empty.ToLine()).value() == Json{{"chain_root", nullptr},
                                                  {"count", 0},
                                                  {"head", std::string(64, '0')},
                                                  {"subject", nullptr},
                                                  {"ts", ""}});
  CHECK(Checkpoint::FromLine(empty.ToLine()).value() == empty);
}

TEST_CASE("a line is one line of ASCII whatever the subject is") {
  const Checkpoint checkpoint{"한글\n\u2028", Sha256::Of("a"), 1, Sha256::Of("b"), "now"};
  const std::string line = checkpoint.ToLine();
  CHECK(line.find('\n') == std::string::npos);
  CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= 0x20 && c < 0x7f; }));
  CHECK(Checkpoint::FromLine(line).value() == checkpoint);
}

TEST_CASE("lines that are no checkpoints are refused") {
  const std::string hash(64, 'a');
  const std::string good = R"({"chain_root":null,"subject":"s","count":1,"head":")" + hash + "\"}";
  CHECK(Checkpoint::FromLine(good).ok());
  for (const std::string& line : std::vector<std::string>{
           "", "[]", "{}", good + "x", R"({"count":1})", R"({"count":-1,"head":")" + hash + "\"}",
           R"({"count":1.0,"head":")" + hash + "\"}", R"({"count":0,"head":")" + hash + "\"}",
           R"({"count":1,"head":"AA"})", R"({"count":1,"subject":1,"head":")" + hash + "\"}",
           R"({"count":1,"chain_root":"x","head":")" + hash + "\"}",
           R"({"count":1,"subject":")" + std::string(201, 's') + R"(","head":")" + hash + "\"}"}) {
    INFO(line);
    CHECK(Checkpoint::FromLine(line).code() == Code::kInvalidArgument);
  }
}
