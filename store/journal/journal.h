#pragma once

// The write-ahead journal: one appender, one commit point, group commit.
//
// A journal file is preallocated and filled with zeros, so that a barrier is one fdatasync of a
// file whose size and blocks do not change. Appends that do not fit go to the next file, which was
// prepared before; full files wait in FullJournals() until the owner checkpointed and sealed them.
//
// Errors are sticky: after a failed write or sync every Append answers kReadOnly and every Sync
// the failure, until the store is opened anew.
//
// Thread-safe. Append holds a short lock for its one pwrite; SyncTo waits without any lock of the
// caller's: the first waiter syncs for all that arrived before it (leader and followers).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/base/file_io.h"
#include "store/base/mutex.h"
#include "store/base/status.h"
#include "store/journal/frame.h"

namespace memoirfs::journal {

struct JournalOptions {
  uint64_t file_size = 64ULL << 20;  // bytes of a journal file
  // Of them, at the end, for AppendClass::kReserve only; at most a quarter of a smaller file.
  uint64_t reserve = 8ULL << 20;
  // The first file of a journal may be halved down to this where the disk has no room for a whole
  // one. Later files are whole.
  uint64_t min_file_size = 1ULL << 20;
};

enum class AppendClass {
  kNormal,
  // Deletion, chain upkeep, marks, checkpoints: may use the reserve when no further file can be
  // made, so that a full disk can be cleaned.
  kReserve,
};

struct Appended {
  std::vector<Location> locations;  // one a frame, in order
  Lsn end;                          // SyncTo(end) makes all of them durable
};

class Journal {
 public:
  // Starts in a new file `number` (made here), or goes on at `at` in an existing file that was
  // stopped cleanly. `epoch` must be greater than that of every earlier opening, and its low half
  // should be random, so that content cannot imitate frames of it.
  static Result<std::unique_ptr<Journal>> Create(FileIo& io, JournalOptions options,
                                                 uint64_t number, uint64_t epoch);
  static Result<std::unique_ptr<Journal>> Continue(FileIo& io, JournalOptions options, Lsn at,
                                                   uint64_t epoch);
  ~Journal();

  // All frames stand contiguously in one file, written by one pwrite. Makes a file of its own, and
  // waits for that, only where none was prepared. kNoSpace when no further file can be made
  // (nothing was appended then), kReadOnly after an earlier failure, kInvalidArgument for a group
  // that no file of the full size can hold. A lack of descriptors or memory while a file is made is
  // answered as such and leaves everything as it was, too.
  Result<Appended> Append(std::span<const NewFrame> frames,
                          AppendClass append_class = AppendClass::kNormal);

  // Returns when everything before `upto` is durable. Costs nothing when only a mark of the
  // journal's own is not: SyncTo(end()) may be called whenever something could be pending.
  Status SyncTo(Lsn upto);

  // Makes the next file when the active one is half full and there is none yet. For a background
  // thread; Append does it itself when it must.
  Status PrepareNext();

  // After the owner appended and synced a frame that says that the store was stopped cleanly: notes
  // where the journal ends, so that the next opening need not look for frames behind it.
  Status NoteCleanStop();

  Lsn end() const;      // where the next append goes
  Lsn durable() const;  // everything before it is synced
  // Whether all that was appended is durable: marks of the journal's own do not count.
  bool settled() const;
  bool wants_next() const;  // PrepareNext would make a file
  bool failed() const;      // an earlier write or sync failed: read-only

  // Files that appends have left, oldest first, with the offset where their frames end.
  std::vector<Lsn> FullJournals() const;
  // Turns the oldest full journal into a pack: footer, sync, rename. Precondition: it is synced
  // (kInvalidArgument otherwise), and everything that recovery would need from it is checkpointed
  // and in synced segments. kNotFound when there is none; kNoSpace may be tried again.
  Status SealOldest();

  // fdatasync calls so far: what tests of group commit count.
  uint64_t sync_count() const;

 private:
  class Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

std::string JournalPath(uint64_t number);  // "journal/<20 digits>.log"

}  // namespace memoirfs::journal
