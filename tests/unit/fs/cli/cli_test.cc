// The command line: what parses, what does not, and what help says.

#include <catch2/catch.hpp>

#include "fs/cli/commands.h"
#include "fs/cli/path_at_seq.h"

namespace memoirfs::cli {
namespace {

// What the words ask for; nothing when they do not parse.
std::optional<Invocation> Parsed(const std::vector<std::string>& words) {
  CommandLine command_line;
  if (command_line.Parse(words)) return std::nullopt;
  return command_line.invocation();
}

bool Parses(const std::vector<std::string>& words) {
  const auto invocation = Parsed(words);
  return invocation && invocation->run != nullptr;
}

}  // namespace

TEST_CASE("every command parses with its arguments") {
  CHECK(Parses({"init"}));
  CHECK(Parses({"agent", "add", "planner"}));
  CHECK(Parses({"agent", "list"}));
  CHECK(Parses({"agent", "rm", "planner", "--purge", "--yes"}));
  CHECK(Parses(
      {"mount", "/mnt", "--agent", "planner", "--foreground", "--allow-other", "--read-only"}));
  CHECK(Parses({"umount", "/mnt"}));
  CHECK(Parses({"status"}));
  CHECK(Parses({"verify", "--agent", "planner", "--level", "chains"}));
  CHECK(Parses({"log"}));
  CHECK(Parses({"log", "planner", "notes.md", "--limit", "3", "--since-seq", "7"}));
  CHECK(Parses({"cat", "planner", "notes.md@3"}));
  CHECK(Parses({"sync"}));
  CHECK(Parses({"fsck", "--repair"}));
}

TEST_CASE("wrong usage is refused") {
  CHECK_FALSE(Parses({}));
  CHECK_FALSE(Parses({"unknown"}));
  CHECK_FALSE(Parses({"agent"}));
  CHECK_FALSE(Parses({"agent", "add"}));
  CHECK_FALSE(Parses({"mount"}));
  CHECK_FALSE(Parses({"verify", "--level", "everything"}));
  CHECK_FALSE(Parses({"log", "planner", "--limit", "-1"}));
  CHECK_FALSE(Parses({"cat", "planner"}));
  CHECK_FALSE(Parses({"status", "--unknown"}));
}

TEST_CASE("options of the program stand before or after the command") {
  for (const auto& words : {std::vector<std::string>{"--store", "/s", "--json", "agent", "list"},
                            std::vector<std::string>{"agent", "list", "--store", "/s", "--json"}}) {
    const auto invocation = Parsed(words);
    REQUIRE(invocation);
    CHECK(invocation->store == "/s");
    CHECK(invocation->json);
    CHECK(invocation->StorePath().value() == "/s");
  }
}

TEST_CASE("a path may name a version") {
  using Split = std::pair<std::string, std::optional<uint64_t>>;
  CHECK(SplitPathAtSeq("notes.md") == Split("notes.md", std::nullopt));
  CHECK(SplitPathAtSeq("notes.md@12") == Split("notes.md", 12));
  CHECK(SplitPathAtSeq("a@b@12") == Split("a@b", 12));
  CHECK(SplitPathAtSeq("me@example") == Split("me@example", std::nullopt));
  CHECK(SplitPathAtSeq("notes@") == Split("notes@", std::nullopt));
  CHECK(SplitPathAtSeq("@12") == Split("@12", std::nullopt));
  CHECK(SplitPathAtSeq("x@99999999999999999999999") ==
        Split("x@99999999999999999999999", std::nullopt));
}

TEST_CASE("sizes are for people") {
  CHECK(HumanBytes(0) == "0 B");
  CHECK(HumanBytes(1023) == "1023 B");
  CHECK(HumanBytes(1536) == "1.5 KiB");
  CHECK(HumanBytes(5ULL << 40) == "5.0 TiB");
}

}  // namespace memoirfs::cli
