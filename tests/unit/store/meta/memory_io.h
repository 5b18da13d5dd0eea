#pragma once

// Files in memory, for tests that open a database thousands of times: with a list of what was
// made durable, a switch that lets writes fail, and the files themselves to damage or to copy.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/base/file_io.h"

namespace memoirfs::test {

// Thread-safe, but for `files`, which is the test's while no database is open.
class MemoryIo final : public FileIo {
 public:
  using Files = std::map<std::string, std::shared_ptr<Bytes>>;

  // A deep copy of all files.
  Files Snapshot() const;
  void Restore(const Files& files);

  void FailWrites(bool fail);
  // "write <file>", "sync <file>", "syncdir <directory>", "rename <from> <to>", in order.
  std::vector<std::string> events() const;
  void ClearEvents();

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status MakeDirectory(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& path) override;
  Result<FileFacts> Stat(const std::string& path) override;
  Result<SpaceFacts> Space() override { return SpaceFacts{}; }
  const std::string& root() const override { return root_; }

 private:
  class OpenFile;
  Status Note(const std::string& event, bool is_write);

  const std::string root_ = "memory";
  mutable std::mutex mutex_;
  Files files_;
  std::vector<std::string> directories_;
  std::vector<std::string> events_;
  bool fail_writes_ = false;
};

}  // namespace memoirfs::test
