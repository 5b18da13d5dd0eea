#include "store/base/json_writer.h"

#include <catch2/catch.hpp>

#include "store/base/json.h"

using memoirfs::CanonicalWriter;
using memoirfs::Code;

TEST_CASE("what is written directly is what the tree's encoder gives") {
  CanonicalWriter out;
  out.BeginObject("a");
  out.EndObject();
  out.BeginObject("b");
  out.Signed("m", -5);
  out.String("s", "q\"\\\n\x01한\u2028");
  out.BeginObject("t");
  out.True("x");
  out.EndObject();
  out.EndObject();
  out.Raw("c", "[1,2]");
  out.Unsigned("d", memoirfs::kMaxJsonInteger);
  const std::string text = out.Finish().value();
  CHECK(text == memoirfs::Canonicalize(memoirfs::ParseJson(text).value()).value());
  CHECK(text ==
        "{\"a\":{},\"b\":{\"m\":-5,\"s\":\"q\\\"\\\\\\n\\u0001한\u2028\",\"t\":{\"x\":true}},"
        "\"c\":[1,2],\"d\":9007199254740991}");
}

TEST_CASE("the first failure is kept and named") {
  CanonicalWriter out;
  out.Unsigned("big", 1ULL << 53);
  out.String("text", "\xff");
  const memoirfs::Status status = out.Finish().status();
  CHECK(status.code() == Code::kTooLarge);
  CHECK(status.message() == "big is not below 2^53");
}

TEST_CASE("integers are limited on both sides, strings are UTF-8") {
  const auto finish_signed = [](int64_t value) {
    CanonicalWriter out;
    out.Signed("n", value);
    return out.Finish().code();
  };
  constexpr int64_t kLimit = (1LL << 53) - 1;
  CHECK(finish_signed(-kLimit) == Code::kOk);
  CHECK(finish_signed(kLimit) == Code::kOk);
  CHECK(finish_signed(-kLimit - 1) == Code::kTooLarge);
  CHECK(finish_signed(kLimit + 1) == Code::kTooLarge);
  CanonicalWriter out;
  out.String("text", "\xed\xa0\x80");
  CHECK(out.Finish().code() == Code::kInvalidArgument);
}
