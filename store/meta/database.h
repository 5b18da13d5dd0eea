#pragma once

// One opened instance of the index's LevelDB, with the environment that it lives in.
//
// LevelDB remembers its first failed write and refuses every later one. After a shortage the index
// therefore opens a second instance on the same files, while readers may still use the first: that
// one can no longer write, and the second removes none of its files.
//
// Only store/meta includes this header.

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>

#include <memory>
#include <string>

#include "store/base/file_io.h"
#include "store/meta/leveldb_env.h"

namespace memoirfs::meta {

// Thread-safe.
class Database {
 public:
  // Opens or creates it. `earlier` is the instance that readers may still use, null where there is
  // none; it writes no more. kCorrupt when it is damaged or LevelDB can't open it; the code of the
  // cause where the system lacked something.
  static Result<std::shared_ptr<Database>> Open(FileIo& io, const std::string& path,
                                                std::shared_ptr<Database> earlier);

  leveldb::DB& db() { return *db_; }

  // What LevelDB answered, with the code of the failure behind it: a lack of quota is one of space.
  Status StatusOf(const leveldb::Status& status) const;
  // After a failed write: whether another instance would find everything that this one was given.
  // Not after a failed sync, nor where the disk fails.
  bool MayBeReplaced() const;

 private:
  Database(FileIo& io, const std::string& path);
  Status OpenDb(const std::string& path);

  LevelDbEnv env_;
  const std::unique_ptr<const leveldb::FilterPolicy> filter_;
  const std::unique_ptr<leveldb::Cache> cache_;
  const std::unique_ptr<leveldb::Logger> logger_;
  std::unique_ptr<leveldb::DB> db_;  // goes first: it uses the ones above
};

}  // namespace memoirfs::meta
