#pragma once

// A folder to measure in, and the system calls that rows are made of, failures as Status.

#include <string>
#include <string_view>
#include <utility>

#include "store/base/status.h"

namespace memoirfs::bench {

// An open file; closed by the destructor, or by Close, which says whether that worked.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  Status Close();

 private:
  int fd_;
};

Result<Fd> Open(const std::string& path, int flags);
Status WriteAll(const Fd& fd, std::string_view bytes);
// Reads to the end of the file, `block` bytes a call; gives how many there were.
Result<size_t> ReadAll(const Fd& fd, size_t block);
Status Fsync(const Fd& fd);
Status Rename(const std::string& from, const std::string& to);
Status Remove(const std::string& path);

// Creates, writes and closes.
Status WriteFile(const std::string& path, std::string_view bytes);

// `size` bytes that do not compress and that differ for each `seed`.
std::string Noise(size_t size, uint64_t seed);

// A new folder in `directory`, taken away with all that is in it by the destructor.
class Workspace {
 public:
  static Result<Workspace> Make(const std::string& directory);
  Workspace(Workspace&& other) noexcept = default;
  Workspace& operator=(Workspace&& other) noexcept = default;
  ~Workspace();

  const std::string& directory() const { return directory_; }
  const std::string& folder() const { return folder_; }
  std::string Path(std::string_view name) const { return folder_ + "/" + std::string(name); }
  // A name that was not used before.
  std::string FreshPath() { return Path("f" + std::to_string(++count_)); }
  // Makes an empty folder in it.
  Status MakeFolder(std::string_view name) const;

 private:
  Workspace(std::string directory, std::string folder)
      : directory_(std::move(directory)), folder_(std::move(folder)) {}

  std::string directory_;
  std::string folder_;
  uint64_t count_ = 0;
};

}  // namespace memoirfs::bench
