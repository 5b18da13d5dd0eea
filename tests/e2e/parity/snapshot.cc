#include "tests/e2e/parity/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/e2e/parity/content.h"

namespace memoirfs::parity {
namespace {

constexpr off_t kEdge = 64 << 10;

std::string ReadAt(int fd, off_t offset, off_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), offset);
  if (got < 0) return Outcome(got);
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

std::string Content(int directory, const std::string& name, off_t size) {
  const UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOATIME | O_CLOEXEC));
  if (!fd.valid()) return "open: " + Outcome(-1);
  if (size <= kWholeContent) return Describe(ReadAt(fd.get(), 0, size));
  return Describe(ReadAt(fd.get(), 0, kEdge)) + " … " +
         Describe(ReadAt(fd.get(), size - kEdge, kEdge));
}

std::map<std::string, std::string> UserAttributes(int directory, const std::string& name) {
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + name;
  std::map<std::string, std::string> attributes;
  char names[16384];
  const ssize_t size = ::llistxattr(path.c_str(), names, sizeof names);
  if (size < 0 && errno != EOPNOTSUPP) attributes[""] = Outcome(size);
  for (const char* at = names; at < names + size; at += std::strlen(at) + 1) {
    if (std::strncmp(at, "user.", 5) != 0) continue;
    std::string value(128 << 10, '\0');
    const ssize_t length = ::lgetxattr(path.c_str(), at, value.data(), value.size());
    attributes[at] = length < 0
                         ? Outcome(length)
                         : Describe(std::string_view(value).substr(0, static_cast<size_t>(length)));
  }
  return attributes;
}

class Walk {
 public:
  Walk(Depth depth, Snapshot* snapshot) : depth_(depth), snapshot_(snapshot) {}

  void Directory(int fd, const std::string& prefix) {
    ::lseek(fd, 0, SEEK_SET);
    DIR* directory = ::fdopendir(fd);
    if (directory == nullptr) {
      (*snapshot_)[prefix].problem = "listing: " + Outcome(-1);
      ::close(fd);
      return;
    }
    errno = 0;
    while (const dirent* entry = ::readdir(directory)) {
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
        Entry(fd, prefix, *entry);
      }
      errno = 0;
    }
    if (errno != 0) (*snapshot_)[prefix].problem = "listing: " + Outcome(-1);
    ::closedir(directory);
  }

 private:
  void Entry(int directory, const std::string& prefix, const dirent& entry) {
    const std::string name = entry.d_name;
    Node& node = (*snapshot_)[prefix + name];
    if (::fstatat(directory, entry.d_name, &node.facts, AT_SYMLINK_NOFOLLOW) != 0) {
      node.problem = "listed, but stat says " + Outcome(-1);
      return;
    }
    if (node.facts.st_ino != entry.d_ino) node.problem = "listed with another inode number";
    if (entry.d_type != DT_UNKNOWN && entry.d_type != IFTODT(node.facts.st_mode)) {
      node.problem = "listed with another type";
    }
    if (S_ISLNK(node.facts.st_mode)) {
      node.target.resize(4096);
      const ssize_t size =
          ::readlinkat(directory, entry.d_name, node.target.data(), node.target.size());
      node.target = size < 0 ? Outcome(size) : node.target.substr(0, static_cast<size_t>(size));
    }
    if (depth_ == Depth::kWhole) {
      node.attributes = UserAttributes(directory, name);
      if (S_ISREG(node.facts.st_mode)) node.content = Content(directory, name, node.facts.st_size);
    }
    if (!S_ISDIR(node.facts.st_mode)) return;
    const int child = ::openat(directory, entry.d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (child < 0) {
      node.problem = "a directory that cannot be opened: " + Outcome(child);
    } else {
      Directory(child, prefix + name + "/");
    }
  }

  Depth depth_;
  Snapshot* snapshot_;
};

void LinkAliases(Snapshot* snapshot) {
  std::map<ino_t, std::string> first;
  for (auto& [path, node] : *snapshot) {
    const auto [found, is_first] = first.emplace(node.facts.st_ino, path);
    if (!is_first) node.same_as = found->second;
  }
}

}  // namespace

Snapshot TakeSnapshot(const Executor& executor, Depth depth) {
  Snapshot snapshot;
  Walk walk(depth, &snapshot);
  Node& root = snapshot["."];
  if (::fstat(executor.root(), &root.facts) != 0) root.problem = "stat: " + Outcome(-1);
  if (depth == Depth::kWhole) root.attributes = UserAttributes(executor.root(), ".");
  // A descriptor of its own: the position in a listing must not be shared.
  walk.Directory(::openat(executor.root(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "");
  for (const auto& [slot, fd] : executor.slots()) {
    Node& node = snapshot["fd:" + slot];
    if (::fstat(fd.get(), &node.facts) != 0) node.problem = "fstat: " + Outcome(-1);
  }
  LinkAliases(&snapshot);
  return snapshot;
}

}  // namespace memoirfs::parity
