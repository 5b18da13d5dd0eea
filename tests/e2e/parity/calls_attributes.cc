// Calls that work on attributes: modes, owners, times, extended attributes.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/e2e/parity/constants.h"
#include "tests/e2e/parity/content.h"
#include "tests/e2e/parity/executor.h"

namespace memoirfs::parity {
namespace {

constexpr size_t kXattrRoom = 128 << 10;

int Flags(const Arguments& a, size_t index) {
  return index < a.size() ? static_cast<int>(Value(a[index])) : 0;
}

mode_t Mode(const Arguments& a, size_t index) { return static_cast<mode_t>(Value(a.at(index))); }

uid_t Owner(const Arguments& a, size_t index) { return static_cast<uid_t>(Value(a.at(index))); }

std::string Chmod(Executor& executor, const Arguments& a) {
  return Outcome(::fchmodat(executor.root(), Expand(a.at(0)).c_str(), Mode(a, 1), 0));
}

std::string Fchmod(Executor& executor, const Arguments& a) {
  return Outcome(::fchmod(executor.Fd(a.at(0)), Mode(a, 1)));
}

// chown PATH UID GID [FLAGS]
std::string Chown(Executor& executor, const Arguments& a) {
  return Outcome(
      ::fchownat(executor.root(), Expand(a.at(0)).c_str(), Owner(a, 1), Owner(a, 2), Flags(a, 3)));
}

std::string Fchown(Executor& executor, const Arguments& a) {
  return Outcome(::fchown(executor.Fd(a.at(0)), Owner(a, 1), Owner(a, 2)));
}

// `now`, `omit`, or SECONDS.NANOSECONDS.
timespec Time(const std::string& text) {
  if (text == "now") return {0, UTIME_NOW};
  if (text == "omit") return {0, UTIME_OMIT};
  const size_t point = text.find('.');
  return {std::stoll(text), point == std::string::npos ? 0 : std::stol(text.substr(point + 1))};
}

// utimens PATH ATIME MTIME [FLAGS]
std::string Utimens(Executor& executor, const Arguments& a) {
  const timespec times[] = {Time(a.at(1)), Time(a.at(2))};
  return Outcome(::utimensat(executor.root(), Expand(a.at(0)).c_str(), times, Flags(a, 3)));
}

std::string Futimens(Executor& executor, const Arguments& a) {
  const timespec times[] = {Time(a.at(1)), Time(a.at(2))};
  return Outcome(::futimens(executor.Fd(a.at(0)), times));
}

// Extended attributes have no *at calls in this libc: the descriptor of the root gives the path.
std::string PathOf(Executor& executor, const std::string& argument) {
  return "/proc/self/fd/" + std::to_string(executor.root()) + "/" + Expand(argument);
}

// setxattr PATH NAME DATA [FLAGS]; lsetxattr works on a link itself.
std::string SetXattr(Executor& executor, const Arguments& a) {
  const std::string value = Data(a.at(2));
  return Outcome(::setxattr(PathOf(executor, a.at(0)).c_str(), Expand(a.at(1)).c_str(),
                            value.data(), value.size(), Flags(a, 3)));
}

std::string LinkSetXattr(Executor& executor, const Arguments& a) {
  const std::string value = Data(a.at(2));
  return Outcome(::lsetxattr(PathOf(executor, a.at(0)).c_str(), Expand(a.at(1)).c_str(),
                             value.data(), value.size(), Flags(a, 3)));
}

std::string DescriptorSetXattr(Executor& executor, const Arguments& a) {
  const std::string value = Data(a.at(2));
  return Outcome(::fsetxattr(executor.Fd(a.at(0)), Expand(a.at(1)).c_str(), value.data(),
                             value.size(), Flags(a, 3)));
}

// getxattr PATH NAME [ROOM]: with a room of 0 the length alone.
std::string GetXattr(Executor& executor, const Arguments& a) {
  std::string value(a.size() > 2 ? static_cast<size_t>(Value(a[2])) : kXattrRoom, '\0');
  const ssize_t size = ::getxattr(PathOf(executor, a.at(0)).c_str(), Expand(a.at(1)).c_str(),
                                  value.empty() ? nullptr : value.data(), value.size());
  if (size < 0 || value.empty()) return Outcome(size);
  return Describe(std::string_view(value).substr(0, static_cast<size_t>(size)));
}

// listxattr PATH [ROOM]
std::string ListXattr(Executor& executor, const Arguments& a) {
  std::string names(a.size() > 1 ? static_cast<size_t>(Value(a[1])) : kXattrRoom, '\0');
  const ssize_t size = ::listxattr(PathOf(executor, a.at(0)).c_str(),
                                   names.empty() ? nullptr : names.data(), names.size());
  if (size < 0 || names.empty()) return Outcome(size);
  std::vector<std::string> sorted;
  for (size_t at = 0; at < static_cast<size_t>(size); at += std::strlen(&names[at]) + 1) {
    sorted.emplace_back(&names[at]);
  }
  std::sort(sorted.begin(), sorted.end());
  std::string text = "[";
  for (const std::string& name : sorted) text += name + " ";
  return text + "]";
}

std::string RemoveXattr(Executor& executor, const Arguments& a) {
  return Outcome(::removexattr(PathOf(executor, a.at(0)).c_str(), Expand(a.at(1)).c_str()));
}

std::string Describe(const struct stat& facts) {
  char text[96];
  std::snprintf(text, sizeof text, "type %o links %lu size %ld", facts.st_mode & S_IFMT,
                static_cast<unsigned long>(facts.st_nlink),
                S_ISDIR(facts.st_mode) ? 0L : static_cast<long>(facts.st_size));
  return text;
}

// stat PATH [FLAGS]
std::string Stat(Executor& executor, const Arguments& a) {
  struct stat facts = {};
  const int result = ::fstatat(executor.root(), Expand(a.at(0)).c_str(), &facts, Flags(a, 1));
  return result < 0 ? Outcome(result) : Describe(facts);
}

std::string Fstat(Executor& executor, const Arguments& a) {
  struct stat facts = {};
  const int result = ::fstat(executor.Fd(a.at(0)), &facts);
  return result < 0 ? Outcome(result) : Describe(facts);
}

}  // namespace

const Calls& AttributeCalls() {
  static const Calls calls = {{"chmod", Chmod},
                              {"fchmod", Fchmod},
                              {"chown", Chown},
                              {"fchown", Fchown},
                              {"utimens", Utimens},
                              {"futimens", Futimens},
                              {"setxattr", SetXattr},
                              {"lsetxattr", LinkSetXattr},
                              {"fsetxattr", DescriptorSetXattr},
                              {"getxattr", GetXattr},
                              {"listxattr", ListXattr},
                              {"removexattr", RemoveXattr},
                              {"stat", Stat},
                              {"fstat", Fstat}};
  return calls;
}

}  // namespace memoirfs::parity
