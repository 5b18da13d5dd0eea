#include "store/base/log.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

using memoirfs::Log;
using memoirfs::LogLevel;

namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a line of the log is one line, whatever names it tells") {
  std::string path = "/tmp/memoirfs-log-XXXXXX";
  ::close(::mkstemp(path.data()));
  REQUIRE(memoirfs::LogToFile(path).ok());
  Log(LogLevel::kError, "test.site", "mounted at /a\n2026 error forged\033[2J\u202e\xff\\");
  const std::string text = ReadAll(path);
  ::unlink(path.c_str());
  const std::string expected =
      " error test.site mounted at /a\\x0a2026 error forged\\x1b[2J\\u202e\\xff\\\\\n";
  INFO(text);
  CHECK(text.find('\n') == text.size() - 1);
  CHECK(text.substr(text.find(' ')) == expected);
}
