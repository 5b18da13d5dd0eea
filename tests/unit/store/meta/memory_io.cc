#include "tests/unit/store/meta/memory_io.h"

#include <algorithm>

namespace memoirfs::test {

class MemoryIo::OpenFile final : public File {
 public:
  OpenFile(MemoryIo& io, std::string path, std::shared_ptr<Bytes> bytes)
      : io_(io), path_(std::move(path)), bytes_(std::move(bytes)) {}

  Result<Bytes> ReadAt(uint64_t offset, size_t size) const override {
    const std::lock_guard lock(io_.mutex_);
    return offset >= bytes_->size() ? Bytes() : bytes_->substr(offset, size);
  }
  Status WriteAt(uint64_t offset, ByteView data) override {
    const std::lock_guard lock(io_.mutex_);
    TRY(io_.Note("write " + path_, true));
    if (bytes_->size() < offset + data.size()) bytes_->resize(offset + data.size());
    bytes_->replace(offset, data.size(), data);
    return {};
  }
  Status DataSync() override {
    const std::lock_guard lock(io_.mutex_);
    return io_.Note("sync " + path_, true);
  }
  Status Sync() override { return DataSync(); }
  Status Truncate(uint64_t size) override {
    const std::lock_guard lock(io_.mutex_);
    bytes_->resize(size);
    return {};
  }
  Result<uint64_t> Size() const override {
    const std::lock_guard lock(io_.mutex_);
    return bytes_->size();
  }
  void StartWriteback(uint64_t /*offset*/, uint64_t /*size*/) override {}
  Status PunchHole(uint64_t /*offset*/, uint64_t /*size*/) override {
    return Status(Code::kNotSupported, "no holes in memory");
  }

 private:
  MemoryIo& io_;
  const std::string path_;
  const std::shared_ptr<Bytes> bytes_;
};

MemoryIo::Files MemoryIo::Snapshot() const {
  const std::lock_guard lock(mutex_);
  Files copy;
  for (const auto& [path, bytes] : files_) copy[path] = std::make_shared<Bytes>(*bytes);
  return copy;
}

void MemoryIo::Restore(const Files& files) {
  const std::lock_guard lock(mutex_);
  files_.clear();
  for (const auto& [path, bytes] : files) files_[path] = std::make_shared<Bytes>(*bytes);
}

void MemoryIo::FailWrites(bool fail) {
  const std::lock_guard lock(mutex_);
  fail_writes_ = fail;
}

std::vector<std::string> MemoryIo::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

void MemoryIo::ClearEvents() {
  const std::lock_guard lock(mutex_);
  events_.clear();
}

Status MemoryIo::Note(const std::string& event, bool is_write) {
  if (is_write && fail_writes_) return Status(Code::kNoSpace, event + ": made to fail");
  events_.push_back(event);
  return {};
}

Result<std::unique_ptr<File>> MemoryIo::Open(const std::string& path, OpenMode mode) {
  const std::lock_guard lock(mutex_);
  const bool exists = files_.count(path) != 0;
  const bool must_exist = mode == OpenMode::kRead || mode == OpenMode::kReadWrite;
  if (!exists && must_exist) return Status(Code::kNotFound, path);
  if (exists && mode == OpenMode::kCreate) return Status(Code::kExists, path);
  if (!exists) files_[path] = std::make_shared<Bytes>();
  return std::unique_ptr<File>(std::make_unique<OpenFile>(*this, path, files_[path]));
}

Status MemoryIo::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  if (files_.count(from) == 0) return Status(Code::kNotFound, from);
  TRY(Note("rename " + from + " " + to, true));
  files_[to] = files_[from];
  files_.erase(from);
  return {};
}

Status MemoryIo::Remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return files_.erase(path) == 1 ? Status() : Status(Code::kNotFound, path);
}

Status MemoryIo::MakeDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (std::find(directories_.begin(), directories_.end(), path) != directories_.end()) {
    return Status(Code::kExists, path);
  }
  directories_.push_back(path);
  return {};
}

Status MemoryIo::RemoveDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find(directories_.begin(), directories_.end(), path);
  if (at == directories_.end()) return Status(Code::kNotFound, path);
  directories_.erase(at);
  return {};
}

Status MemoryIo::SyncDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return Note("syncdir " + path, true);
}

Result<std::vector<std::string>> MemoryIo::List(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (std::find(directories_.begin(), directories_.end(), path) == directories_.end()) {
    return Status(Code::kNotFound, path);
  }
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files_) {
    if (ParentOf(name) == path) names.push_back(name.substr(path.size() + 1));
  }
  return names;
}

Result<FileFacts> MemoryIo::Stat(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto at = files_.find(path);
  if (at == files_.end()) return Status(Code::kNotFound, path);
  return FileFacts{at->second->size(), false};
}

}  // namespace memoirfs::test
