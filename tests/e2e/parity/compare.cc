#include "tests/e2e/parity/compare.h"

#include <cstdio>
#include <ctime>

namespace memoirfs::parity {
namespace {

using Moment = timespec stat::*;

std::string Text(const timespec& time) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld.%09ld", static_cast<long long>(time.tv_sec), time.tv_nsec);
  return text;
}

std::string Octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%06o", mode);
  return text;
}

bool Same(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

std::string Join(const std::map<std::string, std::string>& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) text += name + " = " + value + "; ";
  return text;
}

std::optional<Difference> Differ(const std::string& aspect, const std::string& path,
                                 const std::string& reference, const std::string& mount) {
  if (reference == mount) return std::nullopt;
  return Difference{aspect, aspect + " of " + path + ": expected " + reference + ", got " + mount};
}

// A regular file's S_ISGID says nothing without the right to execute it as the group.
mode_t ComparedMode(mode_t mode) {
  const bool meaningless = S_ISREG(mode) && (mode & S_IXGRP) == 0;
  return meaningless ? mode & ~static_cast<mode_t>(S_ISGID) : mode;
}

// Everything but times, as pairs of a name and a value.
std::map<std::string, std::string> Facts(const Node& node) {
  const bool directory = S_ISDIR(node.facts.st_mode);
  return {{"mode", Octal(ComparedMode(node.facts.st_mode))},
          {"owner", std::to_string(node.facts.st_uid) + ":" + std::to_string(node.facts.st_gid)},
          {"links", std::to_string(node.facts.st_nlink)},
          {"size", directory ? "any" : std::to_string(node.facts.st_size)},
          {"target", node.target},
          {"hard link to", node.same_as},
          {"consistency", node.problem},
          {"content", node.content},
          {"attributes", Join(node.attributes)}};
}

std::optional<Difference> CompareFacts(const std::string& path, const Node& a, const Node& b) {
  const auto expected = Facts(a);
  const auto actual = Facts(b);
  for (const auto& [aspect, value] : expected) {
    if (auto found = Differ(aspect, path, value, actual.at(aspect))) return found;
  }
  return std::nullopt;
}

// The node of the same inode before the step, or null where it is new.
const Node* Earlier(const Change& change, const Node& node) {
  for (const auto& [path, before] : change.before) {
    if (before.facts.st_ino == node.facts.st_ino) return &before;
  }
  return nullptr;
}

// A time in words that are the same on both sides when the rules are kept.
std::string Class(const timespec& time, const CompareOptions& options) {
  if (time.tv_sec >= options.started - 2 && time.tv_sec <= ::time(nullptr) + 2) return "now";
  return Text(time);
}

std::string Movement(const Node* before, const Node& after, Moment moment) {
  if (before == nullptr) return "new";
  return Same(before->facts.*moment, after.facts.*moment) ? "unchanged" : "changed";
}

struct NamedMoment {
  const char* name;
  Moment moment;
};

std::optional<Difference> CompareTime(const std::string& path, const Node& a, const Node& b,
                                      const Change& reference, const Change& mount,
                                      const CompareOptions& options, const NamedMoment& moment) {
  auto found = Differ(moment.name, path, Class(a.facts.*moment.moment, options),
                      Class(b.facts.*moment.moment, options));
  if (found || !options.movements) return found;
  return Differ(moment.name, path, Movement(Earlier(reference, a), a, moment.moment),
                Movement(Earlier(mount, b), b, moment.moment));
}

std::optional<Difference> CompareTimes(const std::string& path, const Node& a, const Node& b,
                                       const Change& reference, const Change& mount,
                                       const CompareOptions& options, bool timed) {
  static constexpr NamedMoment kModified[] = {{"mtime", &stat::st_mtim}, {"ctime", &stat::st_ctim}};
  if (timed) {
    for (const NamedMoment& moment : kModified) {
      auto found = CompareTime(path, a, b, reference, mount, options, moment);
      if (found) return found;
    }
  }
  if (!options.access_times) return std::nullopt;
  return CompareTime(path, a, b, reference, mount, options, {"atime", &stat::st_atim});
}

std::optional<Difference> CompareNames(const Snapshot& a, const Snapshot& b) {
  for (const auto& [path, node] : a) {
    if (b.count(path) == 0) return Difference{"names", path + " is missing"};
  }
  for (const auto& [path, node] : b) {
    if (a.count(path) == 0) return Difference{"names", path + " should not be there"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Difference> Compare(const Change& reference, const Change& mount,
                                  const CompareOptions& options, const std::set<ino_t>& untimed) {
  if (auto found = CompareNames(reference.after, mount.after)) return found;
  for (const auto& [path, a] : reference.after) {
    const Node& b = mount.after.at(path);
    if (auto found = CompareFacts(path, a, b)) return found;
    const bool timed = untimed.count(a.facts.st_ino) == 0;
    auto found = CompareTimes(path, a, b, reference, mount, options, timed);
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<Difference> CompareExactly(const Snapshot& before, const Snapshot& after) {
  static constexpr NamedMoment kTimes[] = {
      {"mtime", &stat::st_mtim}, {"ctime", &stat::st_ctim}, {"atime", &stat::st_atim}};
  if (auto found = CompareNames(before, after)) return found;
  for (const auto& [path, a] : before) {
    const Node& b = after.at(path);
    if (auto found = CompareFacts(path, a, b)) return found;
    // A directory's last change may have been a file that came and went without a record.
    if (S_ISDIR(a.facts.st_mode)) continue;
    for (const auto& [name, moment] : kTimes) {
      auto found = Differ(name, path, Text(a.facts.*moment), Text(b.facts.*moment));
      if (found) return found;
    }
  }
  return std::nullopt;
}

}  // namespace memoirfs::parity
