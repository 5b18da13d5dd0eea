#pragma once

// What the golden store holds: written by make_store.cc, looked for by golden_store_test.cc.

#include <string>
#include <utility>
#include <vector>

namespace memoirfs::golden {

inline constexpr char kAgent[] = "planner";
inline constexpr char kRemovedAgent[] = "coder";

// Text that packs well; `salt` makes it differ.
inline std::string Text(size_t size, char salt) {
  std::string text;
  text.reserve(size + 64);
  for (size_t line = 0; text.size() < size; ++line) {
    text += std::string("line ") + salt + " " + std::to_string(line / 100) + "\n";
  }
  text.resize(size);
  return text;
}

// Path and content, in memory/ of kAgent. Flat and in chunks, in the journal and in a bulk pack.
inline std::vector<std::pair<std::string, std::string>> Files() {
  return {
      {"MEMORY.md", "second version\n"}, {"empty", ""},
      {"notes/a.md", Text(100, 'a')},    {"notes/long.log", Text(20'000, 'b') + "one line more\n"},
      {"chunks", Text(600'000, 'c')},    {"bulk", Text(5U << 20, 'd')}};
}

inline constexpr char kFirstVersion[] = "first version\n";  // of MEMORY.md
inline constexpr char kSymlink[] = "link";
inline constexpr char kSymlinkTarget[] = "notes/a.md";
inline constexpr char kHardLink[] = "notes/same.md";  // as notes/a.md
inline constexpr char kXattr[] = "user.note";         // of MEMORY.md
inline constexpr char kXattrValue[] = "kept";
inline constexpr char kUncommitted[] = "created";  // of the killed store: never closed

}  // namespace memoirfs::golden
