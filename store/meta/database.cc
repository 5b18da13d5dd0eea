#include "store/meta/database.h"

#include <algorithm>

#include "store/meta/log_check.h"

namespace memoirfs::meta {
namespace {

constexpr int kBloomBitsPerKey = 10;
constexpr size_t kBlockCacheSize = 8U << 20;
constexpr size_t kWriteBufferSize = 4U << 20;
constexpr size_t kTableFileSize = 8U << 20;
constexpr int kMaxOpenFiles = 256;

// Failures of the system that a rebuilt index would meet as well.
bool IsOfTheSystem(Code code) {
  return IsShortage(code) || code == Code::kReadOnly || code == Code::kAccess;
}

// Without the file CURRENT LevelDB begins anew beside what is there, takes rows from the old logs
// and drops the old tables: a part of the rows would be missing, without a word.
Status CheckHasCurrent(FileIo& io, const std::string& path) {
  ASSIGN_OR_RETURN(const auto names, io.List(path));
  if (names.empty() || std::find(names.begin(), names.end(), "CURRENT") != names.end()) return {};
  return {Code::kCorrupt, path + "/CURRENT is missing"};
}

}  // namespace

Database::Database(FileIo& io, const std::string& path)
    : env_(io, path),
      filter_(leveldb::NewBloomFilterPolicy(kBloomBitsPerKey)),
      cache_(leveldb::NewLRUCache(kBlockCacheSize)),
      logger_(MakeSilentLogger()) {}

Result<std::shared_ptr<Database>> Database::Open(FileIo& io, const std::string& path,
                                                 std::shared_ptr<Database> earlier) {
  if (earlier != nullptr) earlier->env_.Retire();
  TRY(CheckHasCurrent(io, path).WithContext("index"));
  TRY(CheckLogTails(io, path).WithContext("index"));
  std::shared_ptr<Database> database(new Database(io, path));
  if (earlier != nullptr) TRY(database->env_.KeepFilesFor(earlier));
  TRY(database->OpenDb(path));
  return database;
}

Status Database::OpenDb(const std::string& path) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.env = &env_;
  options.info_log = logger_.get();
  options.write_buffer_size = kWriteBufferSize;
  options.max_open_files = kMaxOpenFiles;
  options.max_file_size = kTableFileSize;
  options.block_cache = cache_.get();
  options.filter_policy = filter_.get();

  leveldb::DB* db = nullptr;
  const leveldb::Status opened = leveldb::DB::Open(options, path, &db);
  db_.reset(db);
  if (opened.ok()) return {};
  const Code cause = env_.cause().code();
  return Status(IsOfTheSystem(cause) ? cause : Code::kCorrupt,
                "index in " + path + " can't be opened: " + opened.ToString());
}

Status Database::StatusOf(const leveldb::Status& status) const {
  if (status.ok()) return {};
  const std::string text = "index: " + status.ToString();
  if (!status.IsIOError()) return Status(Code::kCorrupt, text);
  const Code cause = env_.cause().code();
  if (cause == Code::kQuota) return Status(Code::kNoSpace, text, ErrnoOf(cause));
  return Status(IsOfTheSystem(cause) ? cause : Code::kIo, text);
}

bool Database::MayBeReplaced() const {
  return IsShortage(env_.cause().code()) && !env_.sync_failed();
}

}  // namespace memoirfs::meta
