#include "store/base/file_name.h"

#include <catch2/catch.hpp>

using memoirfs::CheckAgentName;
using memoirfs::CheckFileName;
using memoirfs::Code;
using memoirfs::EscapeInvalidUtf8;
using memoirfs::IsValidUtf8;

TEST_CASE("UTF-8 is checked as RFC 3629 says") {
  CHECK(IsValidUtf8(""));
  CHECK(IsValidUtf8("메모 \xf0\x9f\x98\x80 \u2028"));
  CHECK_FALSE(IsValidUtf8("\xff"));
  CHECK_FALSE(IsValidUtf8("\xc0\xaf"));                // an overlong '/'
  CHECK_FALSE(IsValidUtf8("\xed\xa0\x80"));            // a surrogate
  CHECK_FALSE(IsValidUtf8("\xf4\x90\x80\x80"));        // beyond U+10FFFF
  CHECK_FALSE(IsValidUtf8(std::string("a\xe2\x82")));  // cut off
}

TEST_CASE("bytes that are not UTF-8 are escaped, and so is the backslash that escapes") {
  CHECK(EscapeInvalidUtf8("plain") == "plain");
  CHECK(EscapeInvalidUtf8("한글") == "한글");
  CHECK(EscapeInvalidUtf8("a\\b") == "a\\\\b");
  CHECK(EscapeInvalidUtf8("a\xff") == "a\\xff");
  CHECK(EscapeInvalidUtf8("\xe2\x82") == "\\xe2\\x82");
  CHECK(EscapeInvalidUtf8("a\\xff") != EscapeInvalidUtf8("a\xff"));
}

TEST_CASE("names of entries have up to 255 bytes of UTF-8") {
  CHECK(CheckFileName("notes.md").ok());
  CHECK(CheckFileName("...").ok());
  CHECK(CheckFileName("a\nb\\").ok());
  CHECK(CheckFileName(std::string(255, 'x')).ok());
  CHECK(CheckFileName(std::string(256, 'x')).code() == Code::kNameTooLong);
  CHECK(CheckFileName("a\xff").code() == Code::kIllegalName);
  for (const std::string& name : {std::string(), std::string("."), std::string(".."),
                                  std::string("a/b"), std::string("a\0b", 3)}) {
    CHECK(CheckFileName(name).code() == Code::kInvalidArgument);
  }
}

TEST_CASE("an agent's name fits paths, wires and witnesses") {
  CHECK(CheckAgentName("agent-1.dev_2").ok());
  CHECK(CheckAgentName(std::string(64, 'a')).ok());
  for (const std::string& name :
       {std::string(), std::string(65, 'a'), std::string(".a"), std::string("-a"),
        std::string("a b"), std::string("a/b"), std::string("에이전트"), std::string("a\xff")}) {
    INFO(EscapeInvalidUtf8(name));
    CHECK(CheckAgentName(name).code() == Code::kInvalidArgument);
    CHECK(IsValidUtf8(CheckAgentName(name).message()));
  }
}
