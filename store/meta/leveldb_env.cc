#include "store/meta/leveldb_env.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace memoirfs::meta {
namespace {

using Changes = LevelDbEnv::Changes;

constexpr size_t kWriteBufferSize = 64 * 1024;

bool IsWriteAheadLog(const std::string& name) {
  constexpr std::string_view kSuffix = ".log";
  return name.size() > kSuffix.size() &&
         name.compare(name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
}

// Puts what FileIo returned where LevelDB wants it.
leveldb::Status Deliver(LevelDbEnv& env, const Result<Bytes>& read, leveldb::Slice* result,
                        char* scratch) {
  if (!read.ok()) {
    *result = leveldb::Slice();
    return env.ReadFailed(read.status());
  }
  std::memcpy(scratch, read->data(), read->size());
  *result = leveldb::Slice(scratch, read->size());
  return leveldb::Status::OK();
}

class SequentialFile final : public leveldb::SequentialFile {
 public:
  SequentialFile(LevelDbEnv& env, std::unique_ptr<File> file) : env_(env), file_(std::move(file)) {}

  leveldb::Status Read(size_t n, leveldb::Slice* result, char* scratch) override {
    const leveldb::Status status = Deliver(env_, file_->ReadAt(offset_, n), result, scratch);
    offset_ += result->size();
    return status;
  }
  leveldb::Status Skip(uint64_t n) override {
    offset_ += n;
    return leveldb::Status::OK();
  }

 private:
  LevelDbEnv& env_;
  const std::unique_ptr<File> file_;
  uint64_t offset_ = 0;
};

class RandomAccessFile final : public leveldb::RandomAccessFile {
 public:
  RandomAccessFile(LevelDbEnv& env, std::unique_ptr<File> file)
      : env_(env), file_(std::move(file)) {}

  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result,
                       char* scratch) const override {
    return Deliver(env_, file_->ReadAt(offset, n), result, scratch);
  }

 private:
  LevelDbEnv& env_;
  const std::unique_ptr<File> file_;
};

// Appends through a small buffer. After a failure the environment refuses every further write.
class WritableFile final : public leveldb::WritableFile {
 public:
  WritableFile(LevelDbEnv& env, std::unique_ptr<File> file, bool sync_at_close)
      : env_(env), file_(std::move(file)), sync_at_close_(sync_at_close) {}

  // LevelDB destroys logs without closing them; a failure is then kept by the environment.
  ~WritableFile() override { static_cast<void>(Finish()); }

  leveldb::Status Append(const leveldb::Slice& data) override {
    buffer_.append(data.data(), data.size());
    unsynced_ = true;
    if (buffer_.size() < kWriteBufferSize) return leveldb::Status::OK();
    return ToLevelDb(WriteOut());
  }
  leveldb::Status Flush() override { return ToLevelDb(WriteOut()); }
  leveldb::Status Sync() override { return ToLevelDb(SyncAll()); }
  leveldb::Status Close() override { return ToLevelDb(Finish()); }

 private:
  Status WriteOut() {
    if (buffer_.empty()) return env_.failure();
    TRY(env_.Change(Changes::kFile, [&] { return file_->WriteAt(written_, buffer_); }));
    written_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  // Names first: what this file refers to must exist when its bytes are durable.
  Status SyncAll() {
    TRY(WriteOut());
    TRY(env_.SyncNewNames());
    TRY(env_.Change(Changes::kSync, [&] { return file_->DataSync(); }));
    unsynced_ = false;
    return {};
  }

  Status Finish() {
    if (sync_at_close_ && unsynced_) return SyncAll();
    return WriteOut();
  }

  LevelDbEnv& env_;
  const std::unique_ptr<File> file_;
  const bool sync_at_close_;
  Bytes buffer_;
  uint64_t written_ = 0;
  bool unsynced_ = false;
};

// The store's own lock keeps other processes out.
class NoLock final : public leveldb::FileLock {};

class SilentLogger final : public leveldb::Logger {
 public:
  void Logv(const char* /*format*/, std::va_list /*ap*/) override {}
};

}  // namespace

leveldb::Status ToLevelDb(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return leveldb::Status::OK();
    case Code::kNotFound:
      return leveldb::Status::NotFound(status.message());
    case Code::kCorrupt:
      return leveldb::Status::Corruption(status.message());
    default:
      return leveldb::Status::IOError(status.message());
  }
}

std::unique_ptr<leveldb::Logger> MakeSilentLogger() { return std::make_unique<SilentLogger>(); }

LevelDbEnv::LevelDbEnv(FileIo& io, std::string directory)
    : EnvWrapper(leveldb::Env::Default()), io_(io), directory_(std::move(directory)) {}

leveldb::Status LevelDbEnv::NewSequentialFile(const std::string& name,
                                              leveldb::SequentialFile** file) {
  *file = nullptr;
  auto opened = io_.Open(name, OpenMode::kRead);
  if (!opened.ok()) return ReadFailed(opened.status());
  *file = new SequentialFile(*this, std::move(*opened));  // LevelDB owns it
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::NewRandomAccessFile(const std::string& name,
                                                leveldb::RandomAccessFile** file) {
  *file = nullptr;
  auto opened = io_.Open(name, OpenMode::kRead);
  // LevelDB would take NotFound of a table for that of a key.
  if (opened.code() == Code::kNotFound) return leveldb::Status::Corruption(name, "is missing");
  if (!opened.ok()) return ReadFailed(opened.status());
  *file = new RandomAccessFile(*this, std::move(*opened));  // LevelDB owns it
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::NewWritableFile(const std::string& name, leveldb::WritableFile** file) {
  *file = nullptr;
  std::unique_ptr<File> opened;
  const Status made = Change(Changes::kFile, [&]() -> Status {
    ASSIGN_OR_RETURN(opened, CreateAnew(io_, name));
    NameWasMade();
    return {};
  });
  if (!made.ok()) return ToLevelDb(made);
  *file = new WritableFile(*this, std::move(opened), IsWriteAheadLog(name));  // LevelDB owns it
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::NewAppendableFile(const std::string& name,
                                              leveldb::WritableFile** file) {
  *file = nullptr;
  return leveldb::Status::NotSupported("appending to an old file", name);
}

bool LevelDbEnv::FileExists(const std::string& name) { return io_.Stat(name).ok(); }

leveldb::Status LevelDbEnv::GetChildren(const std::string& directory,
                                        std::vector<std::string>* names) {
  names->clear();
  auto listed = io_.List(directory);
  if (!listed.ok()) return ToLevelDb(listed.status());
  *names = std::move(*listed);
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::RemoveFile(const std::string& name) {
  if (IsKept(name)) return leveldb::Status::OK();
  return ToLevelDb(Change(Changes::kRemoval, [&] { return io_.Remove(name); }));
}

leveldb::Status LevelDbEnv::CreateDir(const std::string& name) {
  return ToLevelDb(io_.MakeDirectory(name));
}

leveldb::Status LevelDbEnv::RemoveDir(const std::string& name) {
  return ToLevelDb(io_.RemoveDirectory(name));
}

leveldb::Status LevelDbEnv::GetFileSize(const std::string& name, uint64_t* size) {
  *size = 0;
  const auto facts = io_.Stat(name);
  if (!facts.ok()) return ToLevelDb(facts.status());
  *size = facts->size;
  return leveldb::Status::OK();
}

// A rename switches CURRENT to another manifest, and the files of the old one are removed next.
leveldb::Status LevelDbEnv::RenameFile(const std::string& from, const std::string& to) {
  const Status renamed = Change(Changes::kFile, [&] { return io_.Rename(from, to); });
  if (!renamed.ok()) return ToLevelDb(renamed);
  NameWasMade();
  return ToLevelDb(SyncNewNames());
}

leveldb::Status LevelDbEnv::LockFile(const std::string& /*name*/, leveldb::FileLock** lock) {
  *lock = new NoLock;  // given back to UnlockFile
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::UnlockFile(leveldb::FileLock* lock) {
  delete lock;
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::NewLogger(const std::string& /*name*/, leveldb::Logger** logger) {
  *logger = MakeSilentLogger().release();  // LevelDB owns it
  return leveldb::Status::OK();
}

Status LevelDbEnv::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

Status LevelDbEnv::Change(Changes what, const std::function<Status()>& call) {
  {
    const MutexLock lock(mutex_);
    TRY(failure_);
    ++changing_;
  }
  const Status done = call();
  const MutexLock lock(mutex_);
  if (--changing_ == 0) change_ended_.NotifyAll();
  if (!done.ok() && what == Changes::kSync) sync_failed_ = true;
  if (!done.ok() && what != Changes::kRemoval && failure_.ok()) failure_ = done;
  return done.ok() ? failure_ : done;
}

void LevelDbEnv::Retire() {
  const MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = read_failure_;
  if (failure_.ok()) failure_ = Status(Code::kUnavailable, "the index is opened anew");
  while (changing_ > 0) change_ended_.Wait(mutex_);
}

bool LevelDbEnv::sync_failed() const {
  const MutexLock lock(mutex_);
  return sync_failed_;
}

Status LevelDbEnv::cause() const {
  const MutexLock lock(mutex_);
  return failure_.ok() ? read_failure_ : failure_;
}

leveldb::Status LevelDbEnv::ReadFailed(const Status& status) {
  if (status.code() != Code::kNotFound) {
    const MutexLock lock(mutex_);
    read_failure_ = status;
  }
  return ToLevelDb(status);
}

Status LevelDbEnv::KeepFilesFor(std::weak_ptr<const void> readers) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, io_.List(directory_));
  for (const std::string& name : names) kept_.insert(directory_ + "/" + name);
  readers_ = std::move(readers);
  return {};
}

bool LevelDbEnv::IsKept(const std::string& name) const {
  return kept_.count(name) != 0 && !readers_.expired();
}

void LevelDbEnv::NameWasMade() {
  const MutexLock lock(mutex_);
  ++names_made_;
}

Status LevelDbEnv::SyncNewNames() {
  uint64_t made = 0;
  {
    const MutexLock lock(mutex_);
    TRY(failure_);
    if (names_synced_ == names_made_) return {};
    made = names_made_;
  }
  TRY(Change(Changes::kSync, [&] { return io_.SyncDirectory(directory_); }));
  const MutexLock lock(mutex_);
  names_synced_ = std::max(names_synced_, made);
  return {};
}

}  // namespace memoirfs::meta
