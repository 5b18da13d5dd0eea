#pragma once

// LevelDB's operating system: its files go through FileIo, so that tests can fail them and forget
// what was not synced. Two things differ from the environment that LevelDB brings along:
//
// * A write-ahead log that is closed with unsynced bytes is synced first. LevelDB itself never
//   syncs a log that it leaves, so that after a power cut an older log could be gone while a
//   newer one is there.
// * Every sync makes new directory entries durable too, not only that of a manifest.
//
// Only store/meta includes this header.

#include <leveldb/env.h>

#include <memory>
#include <string>
#include <vector>

#include "store/base/file_io.h"
#include "store/base/mutex.h"

namespace memoirfs::meta {

// Thread-safe. Threads and time are those of leveldb::Env::Default().
class LevelDbEnv final : public leveldb::EnvWrapper {
 public:
  // `io` outlives it. All file names are below `directory`.
  LevelDbEnv(FileIo& io, std::string directory);

  leveldb::Status NewSequentialFile(const std::string& name,
                                    leveldb::SequentialFile** file) override;
  leveldb::Status NewRandomAccessFile(const std::string& name,
                                      leveldb::RandomAccessFile** file) override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override;
  bool FileExists(const std::string& name) override;
  leveldb::Status GetChildren(const std::string& directory,
                              std::vector<std::string>* names) override;
  leveldb::Status RemoveFile(const std::string& name) override;
  leveldb::Status CreateDir(const std::string& name) override;
  leveldb::Status RemoveDir(const std::string& name) override;
  leveldb::Status GetFileSize(const std::string& name, uint64_t* size) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status LockFile(const std::string& name, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  leveldb::Status NewLogger(const std::string& name, leveldb::Logger** logger) override;

  // The first write or sync that failed; from then on every further one fails with it, so that
  // nothing is built on what may not be there. Files that can't report (a log destroyed without
  // Close) report here.
  Status failure() const;
  // Remembers `status` when it is a failure, and returns it or the earlier one.
  Status Note(Status status);

  // Makes the names of files made since the last call durable.
  Status SyncNewNames();

 private:
  void NameWasMade();

  FileIo& io_;
  const std::string directory_;
  mutable Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  // Counted, so that a file made while the directory is being synced is not missed.
  uint64_t names_made_ GUARDED_BY(mutex_) = 0;
  uint64_t names_synced_ GUARDED_BY(mutex_) = 0;
};

leveldb::Status ToLevelDb(const Status& status);

// A logger that drops what LevelDB would write into a file LOG.
std::unique_ptr<leveldb::Logger> MakeSilentLogger();

}  // namespace memoirfs::meta
