#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace memoirfs::daemon::test {

// A directory that is gone afterwards.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "memoirfs-XXXXXX").string();
    path_ = std::filesystem::canonical(::mkdtemp(name.data())).string();
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace memoirfs::daemon::test
