#include "tests/e2e/stress/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "store/base/unique_fd.h"
#include "tests/e2e/native/random.h"
#include "tests/e2e/stress/workers.h"

namespace memoirfs::stress {

bool Allowed(bool worked, const std::string& what, std::initializer_list<int> errnos) {
  if (worked) return true;
  if (std::find(errnos.begin(), errnos.end(), errno) != errnos.end()) return false;
  throw Violation(what + ": " + strerrorname_np(errno));
}

bool ReadFile(const std::string& path, std::string* content) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!Allowed(fd.valid(), "open " + path, {ENOENT})) return false;
  content->clear();
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    Allowed(got >= 0, "read " + path);
    if (got == 0) return true;
    content->append(buffer, static_cast<size_t>(got));
  }
}

void WriteFile(const std::string& path, const std::string& content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  Allowed(fd >= 0, "create " + path);
  const bool written =
      ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  Allowed(written, "write " + path);
  Allowed(::close(fd) == 0, "close " + path);
}

std::string MakeVersion(uint64_t seed, size_t size) {
  return std::to_string(size) + " " + std::to_string(seed) + "\n" + e2e::Pattern(seed, size);
}

void CheckVersion(const std::string& path, const std::string& content) {
  size_t size = 0;
  unsigned long seed = 0;
  if (std::sscanf(content.c_str(), "%zu %lu", &size, &seed) != 2 || size > content.size() ||
      content != MakeVersion(seed, size)) {
    throw Violation(path + " is no whole version: " + std::to_string(content.size()) +
                    " bytes, beginning " + content.substr(0, 24));
  }
}

}  // namespace memoirfs::stress
