#include "store/base/json.h"

#include <catch2/catch.hpp>

using memoirfs::Code;
using memoirfs::Json;
using memoirfs::ParseJson;

namespace {

std::string Nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

}  // namespace

TEST_CASE("JSON values are parsed") {
  const Json value =
      ParseJson(R"( {"a":[1,-2,1.5,true,false,null,"x\n\u00e9"],"b":{},"c":[]} )").value();
  CHECK(value["a"][0] == 1);
  CHECK(value["a"][1] == -2);
  CHECK(value["a"][2] == 1.5);
  CHECK(value["a"][3] == true);
  CHECK(value["a"][5].is_null());
  CHECK(value["a"][6] == "x\né");
  CHECK(value["b"].is_object());
  CHECK(value["c"].is_array());
  CHECK(ParseJson("[[1,[2]],{\"a\":{\"b\":[3]},\"c\":4}]").value().dump() ==
        "[[1,[2]],{\"a\":{\"b\":[3]},\"c\":4}]");
}

TEST_CASE("text that is not one JSON value is refused") {
  for (const char* text :
       {"",         " ",        "{",       "[1,]",      "{\"a\":1,}", "{a:1}",    "'a'", "01",
        "+1",       "1.",       ".5",      "nul",       "NaN",        "Infinity", "1 2", "{} x",
        "[1] // c", "\"a\nb\"", "\"\\x\"", "\"\\u12\"", "\"a",        "1e400"}) {
    INFO(text);
    CHECK(ParseJson(text).code() == Code::kInvalidArgument);
  }
}

TEST_CASE("a duplicate key is refused, in every spelling and at every level") {
  CHECK(ParseJson(R"({"a":1,"a":1})").code() == Code::kInvalidArgument);
  CHECK(ParseJson(R"({"a":1,"\u0061":2})").code() == Code::kInvalidArgument);
  CHECK(ParseJson(R"([{"b":{"a":1,"c":{},"a":2}}])").code() == Code::kInvalidArgument);
  CHECK(ParseJson(R"({"a":{"a":1}})").ok());
}

TEST_CASE("text that is not UTF-8 is refused") {
  for (const char* text : {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
                           "\"\xe2\x82\"", "{\"\xff\":1}"}) {
    CHECK(ParseJson(text).code() == Code::kInvalidArgument);
  }
}

TEST_CASE("a surrogate must have its other half") {
  CHECK(ParseJson(R"("\ud83d\ude00")").value() == "\xf0\x9f\x98\x80");
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800\ud800")", R"("\ude00\ud83d")",
                           R"("\ud800x")", R"({"\ud800":1})"}) {
    INFO(text);
    CHECK(ParseJson(text).code() == Code::kInvalidArgument);
  }
}

TEST_CASE("NUL and a byte order mark are refused: text behind NUL would not be seen") {
  CHECK(ParseJson(std::string_view("{}\0{}", 5)).code() == Code::kInvalidArgument);
  CHECK(ParseJson(std::string_view("\0", 1)).code() == Code::kInvalidArgument);
  CHECK(ParseJson("\xef\xbb\xbf{}").code() == Code::kInvalidArgument);
}

TEST_CASE("depth is limited before anything can overflow") {
  CHECK(ParseJson(Nested(64)).ok());
  CHECK(ParseJson(Nested(65)).code() == Code::kInvalidArgument);
  CHECK(ParseJson(Nested(2'000'000)).code() == Code::kInvalidArgument);
  CHECK(ParseJson(Nested(3), 3).ok());
  CHECK(ParseJson(Nested(4), 3).code() == Code::kInvalidArgument);
  CHECK(ParseJson("{\"a\":{\"b\":1}}", 1).code() == Code::kInvalidArgument);
  CHECK(ParseJson("1", 0).ok());
  CHECK(ParseJson("[]", 0).code() == Code::kInvalidArgument);
}

TEST_CASE("a failure says where it is") {
  CHECK(ParseJson("[1,x]").status().message().find("byte 4") != std::string::npos);
  CHECK(ParseJson("{\"k\":1,\"k\":2}").status().message().find("'k'") != std::string::npos);
}
