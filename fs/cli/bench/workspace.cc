#include "fs/cli/bench/workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

#include "store/base/printable.h"

namespace memoirfs::bench {

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Status Fd::Close() {
  if (::close(std::exchange(fd_, -1)) != 0) return Status::FromErrno(errno, "close");
  return {};
}

Result<Fd> Open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) return Status::FromErrno(errno, "open " + path);
  return Fd(fd);
}

Status WriteAll(const Fd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0) return Status::FromErrno(errno, "write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<size_t> ReadAll(const Fd& fd, size_t block) {
  std::vector<char> buffer(block);
  size_t total = 0;
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0) return Status::FromErrno(errno, "read");
    if (got == 0) return total;
    total += static_cast<size_t>(got);
  }
}

Status Fsync(const Fd& fd) {
  if (::fsync(fd.get()) != 0) return Status::FromErrno(errno, "fsync");
  return {};
}

Status Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return Status::FromErrno(errno, "rename " + from);
  return {};
}

Status Remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return Status::FromErrno(errno, "unlink " + path);
  return {};
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(Fd fd, Open(path, O_CREAT | O_WRONLY | O_TRUNC));
  TRY(WriteAll(fd, bytes));
  return fd.Close();
}

std::string Noise(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (size_t offset = 0; offset < size; offset += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + offset, &word, std::min(sizeof word, size - offset));
  }
  return bytes;
}

Result<Workspace> Workspace::Make(const std::string& directory) {
  std::string folder = directory + "/memoirfs-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return Status::FromErrno(errno, "make a folder to measure in, in " + directory);
  }
  return Workspace(directory, std::move(folder));
}

Workspace::~Workspace() {
  if (folder_.empty()) return;  // moved from
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
  if (error) {
    std::fprintf(stderr, "remove %s: %s\n", Printable(folder_).c_str(), error.message().c_str());
  }
}

Status Workspace::MakeFolder(std::string_view name) const {
  if (::mkdir(Path(name).c_str(), 0755) != 0)
    return Status::FromErrno(errno, "mkdir " + Path(name));
  return {};
}

}  // namespace memoirfs::bench
