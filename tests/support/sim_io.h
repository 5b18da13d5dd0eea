#pragma once

// A FileIo in memory that knows what a power cut takes away, and that fails where it is told to.
//
// Files. Each has durable content and the changes since its last successful Sync or DataSync. A
// power cut keeps the durable content and, chosen by a seed, some of those changes: every 512-byte
// sector reaches the disk on its own, in some state that it went through, so that writes are torn
// and reordered. The size may grow before the bytes arrive (they read as zeros then). Truncations
// are kept in order. After a *failed* sync the system takes the pages for clean: what was unsynced
// stays readable and is never written, however often sync is called again.
//
// Names. Create, rename, remove and the making of directories change a table of names that is
// durable only after SyncDirectory of the directory; a rename between two directories needs both.
// Syncing a file does not make its name durable. A power cut keeps, by the seed, a prefix of the
// changes that were not synced, in the order in which they were made.
//
// AfterKill() is what kill -9 leaves: all that was written (the page cache survives), still
// unsynced. Handles of the old instance keep working on the old instance.
//
// Thread-safe, with a lock of the rank kLeaf: no lock of that rank may be held during file I/O. A
// File may outlive its SimIo.

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/base/file_io.h"

namespace memoirfs::testing {

// What a call does, for counting and failing. Every call counts as its own kind and as kAny.
enum class SimCall : uint8_t {
  kAny,
  kChange,  // every call that changes something or makes it durable: all but the next six
  kRead,
  kSize,
  kList,
  kStat,
  kSpace,
  kOpen,    // of a file that exists, or must and does not
  kCreate,  // an Open that makes the file
  kWrite,
  kTruncate,
  kDataSync,
  kSync,
  kRename,
  kRemove,  // of a file or a directory
  kMakeDirectory,
  kSyncDirectory,
};
inline constexpr size_t kSimCalls = static_cast<size_t>(SimCall::kSyncDirectory) + 1;

enum class SimFault { kOnce, kForever };

class SimDisk;

class SimIo final : public FileIo {
 public:
  SimIo();  // an empty root directory
  ~SimIo() override;

  // --- faults. `nth` counts calls of `kind` from now on: 1 is the next one.

  // The call fails with `err` and does nothing. A sync that fails loses what it should have synced.
  void FailAt(uint64_t nth, int err, SimCall kind = SimCall::kAny,
              SimFault fault = SimFault::kOnce);
  // The nth write writes the first half of its bytes and fails.
  void ShortWriteAt(uint64_t nth, int err = EIO);
  // The machine stops: this call and all that follow fail and do nothing.
  void CrashAt(uint64_t nth, SimCall kind = SimCall::kChange);
  void ClearFaults();
  // Called before each Sync and DataSync of a file, on its thread and with no lock held: to let
  // other threads do something meanwhile.
  void BeforeEachSync(std::function<void()> hook);
  // Files together hold at most this; what would grow beyond fails with ENOSPC.
  void SetCapacity(uint64_t bytes);

  uint64_t calls(SimCall kind = SimCall::kAny) const;
  bool crashed() const;

  // --- what is left. Neither faults nor the capacity are taken over.

  std::unique_ptr<SimIo> AfterPowerCut(uint64_t seed) const;
  std::unique_ptr<SimIo> AfterKill() const;

  // Damages a file where it lies, on the disk and in the page cache; counts as no call. The bytes
  // must be within the file. False when there is no such file or range.
  bool Overwrite(const std::string& path, uint64_t offset, ByteView bytes);

  // --- FileIo

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status MakeDirectory(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& path) override;
  Result<FileFacts> Stat(const std::string& path) override;
  Result<SpaceFacts> Space() override;
  const std::string& root() const override;

 private:
  explicit SimIo(std::shared_ptr<SimDisk> disk);

  std::shared_ptr<SimDisk> disk_;
};

}  // namespace memoirfs::testing
