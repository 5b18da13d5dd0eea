#pragma once

// A file together with what it must contain. Each call does the same to both; what is read, and the
// size after each change, is compared at once. A difference throws.

#include <cstddef>
#include <stdexcept>
#include <string>

#include "store/base/unique_fd.h"

namespace memoirfs::fsx {

class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class VerifiedFile {
 public:
  explicit VerifiedFile(std::string path);

  // Opens the file, which must have the expected content; `flags` besides O_RDWR and O_CREAT.
  void Open(int flags);
  void Close();

  void Read(size_t offset, size_t size) const;
  void Write(size_t offset, const std::string& data);  // with O_APPEND at the end
  void Resize(size_t size, bool by_path);
  void Allocate(int mode, size_t offset, size_t size);
  void MapRead(size_t offset, size_t size) const;
  void MapWrite(size_t offset, const std::string& data, bool sync);
  // Bytes of another file, or of this one where the ranges do not meet.
  void CopyFrom(const VerifiedFile& source, size_t from, size_t to, size_t size);
  void Seek(size_t offset) const;
  void Sync(bool data_only) const;
  void CheckAll() const;
  void Rename(const std::string& path);

  // Changes a byte behind the model's back.
  void Damage(size_t offset) const;

  size_t size() const { return model_.size(); }
  int flags() const { return flags_; }
  const std::string& path() const { return path_; }

 private:
  void CheckSize() const;
  void Compare(size_t offset, const char* bytes, size_t size) const;
  void Put(size_t offset, const std::string& data);

  std::string path_;
  std::string model_;
  UniqueFd fd_;
  int flags_ = 0;
};

}  // namespace memoirfs::fsx
