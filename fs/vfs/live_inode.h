#pragma once

// An inode that is open, dirty, or being changed: the one place where its uncommitted content and
// attributes live, for every handle of every mount. Whatever is not uncommitted is the volume's and
// is asked there.
//
// Thread-safe. Two locks: the commit lock (one commit, one change of attributes or size at a time)
// and the content lock (shared for reading, exclusive for a change). A commit hashes and appends
// with the commit lock only, so that readers and writers go on.

#include <atomic>
#include <map>
#include <memory>
#include <optional>

#include "fs/vfs/file_buffer.h"
#include "fs/vfs/vfs.h"
#include "store/base/mutex.h"
#include "store/chain/record.h"

namespace memoirfs::vfs {

struct InodeKey {
  StreamId stream;
  InodeId ino;
  friend bool operator==(const InodeKey&, const InodeKey&) = default;
};

struct InodeKeyHash {
  size_t operator()(const InodeKey& key) const noexcept {
    return std::hash<uint64_t>{}(uint64_t{key.stream.value} << 40 ^ key.ino.value);
  }
};

// What one handle last did to its file, as generations of the file: they decide what the handle's
// FLUSH and RELEASE commit.
struct HandleMarks {
  std::atomic<uint64_t> written{0};  // content that a close() must record
  std::atomic<uint64_t> changed{0};  // anything, a truncation at open included
};

// Who changes, and through which handle, if through one.
struct ChangeBy {
  chain::Actor actor;
  HandleMarks* marks = nullptr;
};

struct WriteRequest {
  uint64_t offset = 0;
  bool append = false;
  bool kill_privileges = false;
  ByteView data;
};

// Larger files are EFBIG: numbers in records stay below 2^53.
inline constexpr uint64_t kMaxFileSize = uint64_t{1} << 52;

class LiveInode {
 public:
  LiveInode(volume::Volume& volume, DirtyBudget& budget, InodeKey key);

  const InodeKey& key() const { return key_; }

  // As Volume::GetInode, with what is not committed; `*size` of a regular file.
  Result<volume::Inode> Get(uint64_t* size);

  Result<Bytes> Read(uint64_t offset, uint64_t size);
  Result<size_t> Write(const WriteRequest& request, const ChangeBy& by);
  Status Allocate(int mode, uint64_t offset, uint64_t size, bool kill_privileges,
                  const ChangeBy& by);
  Result<uint64_t> Seek(uint64_t offset, int whence);
  // O_TRUNC: to be committed with what is written next.
  Status TruncateAtOpen(bool kill_privileges, const ChangeBy& by);
  Status ChangeAttributes(const AttributeChange& change, const ChangeBy& by);

  // Extended attributes that were changed after the last name had gone: never recorded, seen while
  // the file is open. nullopt: removed. kNotFound where nobody has it open.
  using XattrChanges = std::map<std::string, std::optional<Bytes>>;
  Status ChangeOrphanXattr(const std::string& name, const std::optional<Bytes>& value,
                           const ChangeBy& by);
  XattrChanges orphan_xattrs();

  // --- what the namespace does to it ----------------------------------------------------------
  // Just made by Volume::Create in `parent`.
  Status NoteCreated(InodeId parent, const ChangeBy& by);
  // Names came or went: the inode as the volume has it now.
  void NoteNames(const volume::Inode& inode);
  bool UncommittedIn(InodeId parent);

  // --- commits --------------------------------------------------------------------------------
  // Does nothing when nothing is to be committed, or the inode has no name any more.
  Status Commit();
  // FLUSH: only when the handle wrote since the last commit. RELEASE: when it changed anything, or
  // is the last handle.
  Status CommitAtFlush(const HandleMarks& marks);
  Status CommitAtRelease(const HandleMarks& marks, bool last);
  // Runs `change` with nothing uncommitted: a record that needs the inode's own before it.
  Status CommitAnd(const std::function<Status()>& change);
  // Frees memory: spills a file of several chunks, or one that is never committed; commits others.
  Status Relieve();

  // The table keeps it although nobody refers to it: something is to be committed.
  bool must_keep() const { return must_keep_.load(std::memory_order_acquire); }
  uint64_t dirty_bytes();
  // Dirty and untouched for `idle`, or dirty for `age`.
  bool IsDue(Nanos now, Nanos idle, Nanos age);
  enum class State { kClean, kDirty, kUncommitted };
  State state();

  std::atomic<uint32_t> handles{0};  // open ones, over all mounts

 private:
  // What a commit took out under the content lock.
  struct CommitWork {
    BufferSnapshot snapshot;
    Attributes attributes;
    chain::Actor actor;
    uint64_t generation = 0;
    bool content_changed = false;
    bool committed_before = false;
    bool truncation_noted = false;
  };

  Status Load() REQUIRES(content_);
  Status LoadForReading() EXCLUDES(content_);
  Status BeginChange() REQUIRES(content_);
  void EndChange(const ChangeBy& by, bool is_write) REQUIRES(content_);
  void ClearPrivileges() REQUIRES(content_);
  void Touch() REQUIRES(content_);
  void UpdateKeep() REQUIRES(content_);
  Status ResizeAndNote(uint64_t size, bool note) REQUIRES(content_);
  bool MustNoteTruncation() const REQUIRES_SHARED(content_);
  Status ApplyAttributes(const AttributeChange& change, const ChangeBy& by, bool* commit_now)
      REQUIRES(commit_);

  Status CommitLocked() REQUIRES(commit_);
  std::optional<CommitWork> BeginCommit() REQUIRES(commit_);
  Result<volume::Inode> Record(CommitWork& work, ContentId* content) REQUIRES(commit_);
  void EndCommit(CommitWork work, const Result<volume::Inode>& recorded, const ContentId& content)
      REQUIRES(commit_);

  volume::Volume& volume_;
  DirtyBudget& budget_;
  const InodeKey key_;
  std::atomic<bool> must_keep_{false};

  Mutex commit_{LockRank::kFileCommit};
  SharedMutex content_{LockRank::kFileContent};
  std::unique_ptr<FileBuffer> buffer_ GUARDED_BY(content_);  // null: not loaded
  bool pending_ GUARDED_BY(content_) = false;                // something to commit
  bool committed_ GUARDED_BY(content_) = true;               // a record knows the inode
  bool unlinked_ GUARDED_BY(content_) = false;               // no name: never committed again
  bool truncation_noted_ GUARDED_BY(content_) = false;
  InodeId created_in_ GUARDED_BY(content_);     // while not committed
  Attributes attributes_ GUARDED_BY(content_);  // valid while pending
  XattrChanges orphan_xattrs_ GUARDED_BY(content_);
  chain::Actor actor_ GUARDED_BY(content_);  // of the last change
  uint64_t generation_ GUARDED_BY(content_) = 0;
  uint64_t committed_generation_ GUARDED_BY(content_) = 0;
  Nanos dirty_since_ GUARDED_BY(content_) = 0;  // monotonic
  Nanos last_change_ GUARDED_BY(content_) = 0;  // monotonic
};

}  // namespace memoirfs::vfs
