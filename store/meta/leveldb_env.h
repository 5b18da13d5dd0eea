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

#include <functional>
#include <memory>
#include <set>
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

  // Every call that changes a file goes through here. After the first one that failed each further
  // one is refused with that failure, so that nothing is built on what may not be there. Files that
  // can't report (a log destroyed without Close) report here.
  enum class Changes { kFile, kSync, kRemoval };  // a removal that fails stops nothing
  Status Change(Changes what, const std::function<Status()>& call);
  Status failure() const;
  // After a sync that failed, bytes that can still be read may never be written.
  bool sync_failed() const;
  // Refuses every further change, and returns when none is under way.
  void Retire();

  // What LevelDB was told last when a call failed, for it keeps the text only: failure() where
  // there is one, else the newest failure of a read.
  Status cause() const;
  // Remembers the failure of a read, and returns it.
  leveldb::Status ReadFailed(const Status& status);

  // From now on RemoveFile leaves the files that are there now, as long as `readers` lives: they
  // are those of an earlier instance of the database. LevelDB asks again at its next clean-up.
  Status KeepFilesFor(std::weak_ptr<const void> readers);

  // Makes the names of files made since the last call durable.
  Status SyncNewNames();

 private:
  void NameWasMade();
  bool IsKept(const std::string& name) const;

  FileIo& io_;
  const std::string directory_;
  std::weak_ptr<const void> readers_;
  std::set<std::string> kept_;
  mutable Mutex mutex_;
  CondVar change_ended_;
  uint64_t changing_ GUARDED_BY(mutex_) = 0;  // calls under way
  Status failure_ GUARDED_BY(mutex_);
  Status read_failure_ GUARDED_BY(mutex_);
  bool sync_failed_ GUARDED_BY(mutex_) = false;
  // Counted, so that a file made while the directory is being synced is not missed.
  uint64_t names_made_ GUARDED_BY(mutex_) = 0;
  uint64_t names_synced_ GUARDED_BY(mutex_) = 0;
};

leveldb::Status ToLevelDb(const Status& status);

// A logger that drops what LevelDB would write into a file LOG.
std::unique_ptr<leveldb::Logger> MakeSilentLogger();

}  // namespace memoirfs::meta
