#include "store/meta/index.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <atomic>

#include "store/meta/leveldb_env.h"
#include "store/meta/log_check.h"
#include "store/meta/overlay.h"

namespace memoirfs::meta {
namespace {

constexpr int kBloomBitsPerKey = 10;
constexpr size_t kBlockCacheSize = 8U << 20;
constexpr size_t kWriteBufferSize = 4U << 20;
constexpr size_t kTableFileSize = 8U << 20;
constexpr int kMaxOpenFiles = 256;
constexpr size_t kFlushBytes = 1U << 20;  // of batches merged into one write to LevelDB
constexpr size_t kScanPage = 128;         // overlay rows copied under the lock at once

leveldb::Slice SliceOf(ByteView bytes) { return {bytes.data(), bytes.size()}; }
ByteView ViewOf(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

Status FromLevelDb(const leveldb::Status& status) {
  if (status.ok()) return {};
  const Code code = status.IsIOError() ? Code::kIo : Code::kCorrupt;
  return Status(code, "index: " + status.ToString());
}

// Failures of the system that a rebuilt index would meet as well.
bool IsLackOfResources(Code code) {
  return code == Code::kNoSpace || code == Code::kQuota || code == Code::kTooManyFiles ||
         code == Code::kOutOfMemory || code == Code::kReadOnly || code == Code::kAccess;
}

leveldb::ReadOptions Verified() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

void AddTo(leveldb::WriteBatch& out, const Batch& batch) {
  for (const auto& [key, value] : batch.ops()) {
    if (value) {
      out.Put(SliceOf(key), SliceOf(*value));
    } else {
      out.Delete(SliceOf(key));
    }
  }
}

}  // namespace

// Locks: `mutex_` guards the overlay and is never held while LevelDB is called. One thread at a
// time moves batches to LevelDB (`flushing_`); a batch leaves the overlay only after LevelDB has
// it, so a reader that looks at the overlay first finds each row in one of the two.
class Index::Impl {
 public:
  Impl(FileIo& io, const std::string& path)
      : env_(io, path),
        filter_(leveldb::NewBloomFilterPolicy(kBloomBitsPerKey)),
        cache_(leveldb::NewLRUCache(kBlockCacheSize)),
        logger_(MakeSilentLogger()) {}

  Status Open(const std::string& path);
  Result<std::optional<Bytes>> Get(ByteView key) const;
  Status Scan(ByteView prefix, ByteView start, const Visitor& visit) const;
  Status Flush(journal::Lsn durable, leveldb::WriteBatch* synced_rows);

  void Apply(Batch batch, journal::Lsn lsn) {
    const MutexLock lock(mutex_);
    overlay_.Apply(std::move(batch), lsn);
  }
  void ApplyPending(const Batch& batch) {
    const MutexLock lock(mutex_);
    overlay_.ApplyPending(batch);
  }
  void DropPending(const std::vector<Bytes>& keys) {
    const MutexLock lock(mutex_);
    overlay_.DropPending(keys);
  }
  bool damaged() const { return damaged_; }
  size_t overlay_bytes() const {
    const MutexLock lock(mutex_);
    return overlay_.bytes();
  }

 private:
  class FlushTurn;

  // A LevelDB iterator and the overlay rows of the next stretch of keys, as of one moment.
  struct Stretch {
    std::unique_ptr<leveldb::Iterator> iterator;
    uint64_t drops = 0;
    Overlay::Page page;
  };
  void NextStretch(ByteView prefix, ByteView from, Stretch& stretch) const;
  // False when the visitor had enough.
  Result<bool> VisitStretch(ByteView prefix, Stretch& stretch, const Visitor& visit) const;

  // The failure of a read; remembers that the database is damaged.
  Status ReadFailure(const leveldb::Status& status) const {
    const Status failure = FromLevelDb(status);
    if (failure.code() == Code::kCorrupt) damaged_ = true;
    return failure;
  }
  Status FlushDurable(journal::Lsn durable);
  Status Write(leveldb::WriteBatch& batch, bool sync);

  LevelDbEnv env_;
  const std::unique_ptr<const leveldb::FilterPolicy> filter_;
  const std::unique_ptr<leveldb::Cache> cache_;
  const std::unique_ptr<leveldb::Logger> logger_;
  std::unique_ptr<leveldb::DB> db_;  // goes first: it uses the ones above

  mutable Mutex mutex_;
  CondVar flush_ended_;
  Overlay overlay_ GUARDED_BY(mutex_);
  bool flushing_ GUARDED_BY(mutex_) = false;
  mutable std::atomic<bool> damaged_{false};
  Status failure_ GUARDED_BY(mutex_);
};

// Being the one thread that writes to LevelDB.
class Index::Impl::FlushTurn {
 public:
  explicit FlushTurn(Impl& impl) : impl_(impl) {
    const MutexLock lock(impl_.mutex_);
    while (impl_.flushing_) impl_.flush_ended_.Wait(impl_.mutex_);
    impl_.flushing_ = true;
  }
  ~FlushTurn() {
    {
      const MutexLock lock(impl_.mutex_);
      impl_.flushing_ = false;
    }
    impl_.flush_ended_.NotifyOne();
  }
  FlushTurn(const FlushTurn&) = delete;
  FlushTurn& operator=(const FlushTurn&) = delete;

 private:
  Impl& impl_;
};

Status Index::Impl::Open(const std::string& path) {
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
  const Status cause = env_.failure();
  const Code code = IsLackOfResources(cause.code()) ? cause.code() : Code::kCorrupt;
  return Status(code, "index in " + path + " can't be opened: " + opened.ToString());
}

Result<std::optional<Bytes>> Index::Impl::Get(ByteView key) const {
  {
    const MutexLock lock(mutex_);
    if (const OverlayRow* row = overlay_.Find(key)) return *row;
  }
  Bytes value;
  const leveldb::Status got = db_->Get(Verified(), SliceOf(key), &value);
  if (got.IsNotFound()) return std::optional<Bytes>();
  TRY(ReadFailure(got));
  return std::optional<Bytes>(std::move(value));
}

Status Index::Impl::Scan(ByteView prefix, ByteView start, const Visitor& visit) const {
  if (start > prefix && !start.starts_with(prefix)) return {};
  Bytes from(std::max(prefix, start));
  Stretch stretch;
  for (;;) {
    NextStretch(prefix, from, stretch);
    ASSIGN_OR_RETURN(const bool more, VisitStretch(prefix, stretch, visit));
    if (!more || stretch.page.complete) return {};
    from = stretch.page.rows.back().first + '\0';
  }
}

// A row that left the overlay since the iterator was made could be missing in both; then the
// iterator is made anew.
void Index::Impl::NextStretch(ByteView prefix, ByteView from, Stretch& stretch) const {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const uint64_t drops = overlay_.drops();
      if (stretch.iterator != nullptr && stretch.drops == drops) {
        stretch.page = overlay_.Copy(prefix, from, kScanPage);
        return;
      }
      stretch.drops = drops;
    }
    stretch.iterator.reset(db_->NewIterator(Verified()));
    stretch.iterator->Seek(SliceOf(from));
  }
}

Result<bool> Index::Impl::VisitStretch(ByteView prefix, Stretch& stretch,
                                       const Visitor& visit) const {
  leveldb::Iterator& rows = *stretch.iterator;
  auto overlay = stretch.page.rows.begin();
  const auto overlay_end = stretch.page.rows.end();
  const ByteView last =
      stretch.page.complete ? ByteView() : ByteView(std::prev(overlay_end)->first);
  for (;;) {
    // LevelDB skips a damaged block and goes on: nothing behind it must be shown as complete.
    TRY(ReadFailure(rows.status()));
    const ByteView key = rows.Valid() ? ViewOf(rows.key()) : ByteView();
    const bool has_row =
        rows.Valid() && key.starts_with(prefix) && (stretch.page.complete || key <= last);
    if (!has_row && overlay == overlay_end) return true;
    if (has_row && (overlay == overlay_end || key < overlay->first)) {
      if (!visit(key, ViewOf(rows.value()))) return false;
      rows.Next();
      continue;
    }
    const bool hides_row = has_row && key == overlay->first;
    if (overlay->second && !visit(overlay->first, *overlay->second)) return false;
    if (hides_row) rows.Next();
    ++overlay;
  }
}

Status Index::Impl::Write(leveldb::WriteBatch& batch, bool sync) {
  {
    const MutexLock lock(mutex_);
    TRY(failure_);
  }
  leveldb::WriteOptions options;
  options.sync = sync;
  const leveldb::Status written = db_->Write(options, &batch);
  if (written.ok()) return {};
  const MutexLock lock(mutex_);
  failure_ = Status(Code::kIo,
                    "index: a write failed, nothing more is written to it until the "
                    "store is opened anew: " +
                        written.ToString());
  return failure_;
}

Status Index::Impl::FlushDurable(journal::Lsn durable) {
  for (;;) {
    std::vector<const Batch*> batches;
    {
      const MutexLock lock(mutex_);
      batches = overlay_.Oldest(durable, kFlushBytes);
    }
    if (batches.empty()) return {};
    leveldb::WriteBatch merged;
    for (const Batch* batch : batches) AddTo(merged, *batch);
    TRY(Write(merged, false));
    const MutexLock lock(mutex_);
    overlay_.DropOldest(batches.size());
  }
}

Status Index::Impl::Flush(journal::Lsn durable, leveldb::WriteBatch* synced_rows) {
  const FlushTurn turn(*this);
  TRY(FlushDurable(durable));
  return synced_rows == nullptr ? Status() : Write(*synced_rows, true);
}

Result<std::unique_ptr<Index>> Index::Open(FileIo& io, const std::string& path) {
  if (const Status made = io.MakeDirectory(path); made.ok()) {
    TRY(io.SyncDirectory(ParentOf(path)));
  } else if (made.code() != Code::kExists) {
    return made;
  }
  TRY(CheckLogTails(io, path).WithContext("index"));
  auto impl = std::make_unique<Impl>(io, path);
  TRY(impl->Open(path));
  return std::unique_ptr<Index>(new Index(std::move(impl)));
}

Index::Index(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Index::~Index() = default;

Result<std::optional<Bytes>> Index::Get(ByteView key) const { return impl_->Get(key); }

Status Index::Scan(ByteView prefix, ByteView start, const Visitor& visit) const {
  return impl_->Scan(prefix, start, visit);
}

void Index::Apply(Batch batch, journal::Lsn lsn) { impl_->Apply(std::move(batch), lsn); }
void Index::ApplyPending(const Batch& batch) { impl_->ApplyPending(batch); }
void Index::DropPending(const std::vector<Bytes>& keys) { impl_->DropPending(keys); }

Status Index::Flush(journal::Lsn durable) { return impl_->Flush(durable, nullptr); }

Status Index::FlushAndSync(journal::Lsn durable, Bytes key, Bytes value) {
  leveldb::WriteBatch row;
  row.Put(SliceOf(key), SliceOf(value));
  return impl_->Flush(durable, &row);
}

bool Index::damaged() const { return impl_->damaged(); }

size_t Index::overlay_bytes() const { return impl_->overlay_bytes(); }

Status DestroyIndex(FileIo& io, const std::string& path) {
  const auto names = io.List(path);
  if (names.code() == Code::kNotFound) return {};
  TRY(names);
  for (const std::string& name : *names) TRY(io.Remove(path + "/" + name));
  TRY(io.RemoveDirectory(path));
  return io.SyncDirectory(ParentOf(path));
}

}  // namespace memoirfs::meta
