#include "store/meta/index.h"

#include <leveldb/write_batch.h>

#include <algorithm>
#include <atomic>

#include "store/base/log.h"
#include "store/meta/database.h"
#include "store/meta/overlay.h"

namespace memoirfs::meta {
namespace {

constexpr size_t kFlushBytes = 1U << 20;      // of batches merged into one write to LevelDB
constexpr size_t kScanPage = 128;             // overlay rows copied under the lock at once
constexpr uint64_t kRoomToReopen = 8U << 20;  // what LevelDB writes while it is opened, and more

leveldb::Slice SliceOf(ByteView bytes) { return {bytes.data(), bytes.size()}; }
ByteView ViewOf(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

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
// it, so a reader that looks at the overlay first and takes the database under the same lock finds
// each row in one of the two, also while the database is opened anew.
class Index::Impl {
 public:
  Impl(FileIo& io, std::string path, std::shared_ptr<Database> database)
      : io_(io), path_(std::move(path)), database_(std::move(database)) {}

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
  bool has_unwritten() const {
    const MutexLock lock(mutex_);
    return overlay_.has_queued();
  }
  size_t overlay_bytes() const {
    const MutexLock lock(mutex_);
    return overlay_.bytes();
  }

 private:
  class FlushTurn;

  // A LevelDB iterator and the overlay rows of the next stretch of keys, as of one moment.
  struct Stretch {
    std::shared_ptr<Database> database;  // outlives its iterator
    std::unique_ptr<leveldb::Iterator> iterator;
    uint64_t drops = 0;
    Overlay::Page page;
  };
  void NextStretch(ByteView prefix, ByteView from, Stretch& stretch) const;
  // False when the visitor had enough.
  Result<bool> VisitStretch(ByteView prefix, Stretch& stretch, const Visitor& visit) const;

  // The failure of a read; remembers that the database is damaged.
  Status ReadFailure(const Database& database, const leveldb::Status& status) const {
    const Status failure = database.StatusOf(status);
    if (IsDamage(failure.code())) damaged_ = true;
    return failure;
  }
  Status FlushDurable(Database& database, journal::Lsn durable);
  Status Write(Database& database, leveldb::WriteBatch& batch, bool sync);
  Result<std::shared_ptr<Database>> WritableDatabase();
  Result<std::shared_ptr<Database>> OpenAnew(std::shared_ptr<Database> earlier);
  bool HasRoomToReopen() const;

  FileIo& io_;
  const std::string path_;

  mutable Mutex mutex_;
  CondVar flush_ended_;
  std::shared_ptr<Database> database_ GUARDED_BY(mutex_);
  std::weak_ptr<Database> replaced_ GUARDED_BY(mutex_);  // while readers still use it
  Overlay overlay_ GUARDED_BY(mutex_);
  bool flushing_ GUARDED_BY(mutex_) = false;
  mutable std::atomic<bool> damaged_{false};
  Status failure_ GUARDED_BY(mutex_);  // of a write; final unless the database may be replaced
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

Result<std::optional<Bytes>> Index::Impl::Get(ByteView key) const {
  std::shared_ptr<Database> database;
  {
    const MutexLock lock(mutex_);
    if (const OverlayRow* row = overlay_.Find(key)) return *row;
    database = database_;
  }
  Bytes value;
  const leveldb::Status got = database->db().Get(Verified(), SliceOf(key), &value);
  if (got.IsNotFound()) return std::optional<Bytes>();
  TRY(ReadFailure(*database, got));
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
    std::shared_ptr<Database> database;
    {
      const MutexLock lock(mutex_);
      const uint64_t drops = overlay_.drops();
      if (stretch.iterator != nullptr && stretch.drops == drops) {
        stretch.page = overlay_.Copy(prefix, from, kScanPage);
        return;
      }
      stretch.drops = drops;
      database = database_;
    }
    stretch.iterator.reset();
    stretch.database = std::move(database);
    stretch.iterator.reset(stretch.database->db().NewIterator(Verified()));
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
    TRY(ReadFailure(*stretch.database, rows.status()));
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

Status Index::Impl::Write(Database& database, leveldb::WriteBatch& batch, bool sync) {
  leveldb::WriteOptions options;
  options.sync = sync;
  const leveldb::Status written = database.db().Write(options, &batch);
  if (written.ok()) return {};
  const Status failure = ReadFailure(database, written)
                             .WithContext(database.MayBeReplaced()
                                              ? "a write failed, and is tried again when it can be"
                                              : "a write failed, nothing more is written to the "
                                                "index until the store is opened anew");
  const MutexLock lock(mutex_);
  failure_ = failure;
  return failure;
}

bool Index::Impl::HasRoomToReopen() const {
  const auto space = io_.Space();
  return !space.ok() ||
         space->available_blocks * std::max<uint64_t>(space->block_size, 1) >= kRoomToReopen;
}

// The database to write to. After a shortage that is a new instance, once there is room for it and
// nobody reads through the one before the last.
Result<std::shared_ptr<Database>> Index::Impl::WritableDatabase() {
  std::shared_ptr<Database> earlier;
  Status failure;
  {
    const MutexLock lock(mutex_);
    if (failure_.ok()) return database_;
    failure = failure_;
    if (replaced_.expired()) earlier = database_;
  }
  if (earlier == nullptr || damaged_ || !earlier->MayBeReplaced()) return failure;
  if (!HasRoomToReopen()) return failure;
  return OpenAnew(std::move(earlier));
}

Result<std::shared_ptr<Database>> Index::Impl::OpenAnew(std::shared_ptr<Database> earlier) {
  Result<std::shared_ptr<Database>> opened = Database::Open(io_, path_, earlier);
  if (!opened.ok()) {
    if (opened.code() == Code::kCorrupt) damaged_ = true;
    return opened.status();
  }
  Log(LogLevel::kInfo, "index.reopened", path_ + " is written again after a shortage");
  const MutexLock lock(mutex_);
  replaced_ = earlier;
  database_ = *opened;
  failure_ = {};
  return database_;
}

Status Index::Impl::FlushDurable(Database& database, journal::Lsn durable) {
  for (;;) {
    std::vector<const Batch*> batches;
    {
      const MutexLock lock(mutex_);
      batches = overlay_.Oldest(durable, kFlushBytes);
    }
    if (batches.empty()) return {};
    leveldb::WriteBatch merged;
    for (const Batch* batch : batches) AddTo(merged, *batch);
    TRY(Write(database, merged, false));
    const MutexLock lock(mutex_);
    overlay_.DropOldest(batches.size());
  }
}

Status Index::Impl::Flush(journal::Lsn durable, leveldb::WriteBatch* synced_rows) {
  const FlushTurn turn(*this);
  ASSIGN_OR_RETURN(const std::shared_ptr<Database> database, WritableDatabase());
  TRY(FlushDurable(*database, durable));
  return synced_rows == nullptr ? Status() : Write(*database, *synced_rows, true);
}

Result<std::unique_ptr<Index>> Index::Open(FileIo& io, const std::string& path) {
  if (const Status made = io.MakeDirectory(path); made.ok()) {
    TRY(io.SyncDirectory(ParentOf(path)));
  } else if (made.code() != Code::kExists) {
    return made;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Database> database, Database::Open(io, path, nullptr));
  return std::unique_ptr<Index>(new Index(std::make_unique<Impl>(io, path, std::move(database))));
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

bool Index::has_unwritten() const { return impl_->has_unwritten(); }

size_t Index::overlay_bytes() const { return impl_->overlay_bytes(); }

namespace {

// LevelDB makes no directories. One that somebody put there goes where nothing is lost with it.
Status RemoveEntry(FileIo& io, const std::string& path) {
  const auto facts = io.Stat(path);
  if (!facts.ok() || !facts->is_directory) return io.Remove(path);
  const Status removed = io.RemoveDirectory(path);
  if (removed.code() != Code::kNotEmpty) return removed;
  return {Code::kNotEmpty, io.root() + "/" + path +
                               " is a directory with something in it, not a file of the index: "
                               "move it away"};
}

}  // namespace

Status DestroyIndex(FileIo& io, const std::string& path) {
  const auto names = io.List(path);
  if (names.code() == Code::kNotFound) return {};
  TRY(names);
  for (const std::string& name : *names) TRY(RemoveEntry(io, path + "/" + name));
  TRY(io.RemoveDirectory(path));
  return io.SyncDirectory(ParentOf(path));
}

}  // namespace memoirfs::meta
