#pragma once

// All file I/O of the store goes through this seam: the real one, and in tests one that fails, one
// that forgets what was not synced (tests/support/sim_io.h).
//
// Paths are relative to one root directory ("journal/3.log") and never leave it: the real one
// resolves them with openat2(2) RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, so that a symbolic link
// planted in a store is an error and is not followed. What is opened is a regular file: anything
// else in its place is kCorrupt, and nothing waits for it (store/base/regular_file.h). Files are
// created 0600, directories 0700.
//
// FileIo is thread-safe. A File may be used by several threads at once for ReadAt and WriteAt.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/status.h"

namespace memoirfs {

class File {
 public:
  virtual ~File() = default;

  // Up to `size` bytes from `offset`; fewer only at the end of the file.
  virtual Result<Bytes> ReadAt(uint64_t offset, size_t size) const = 0;
  // All of `data`, or a failure (some of it may have been written then).
  virtual Status WriteAt(uint64_t offset, ByteView data) = 0;
  virtual Status DataSync() = 0;  // fdatasync
  virtual Status Sync() = 0;      // fsync
  virtual Status Truncate(uint64_t size) = 0;
  virtual Result<uint64_t> Size() const = 0;
  // A hint: begin writing these bytes out, without waiting. Makes nothing durable.
  virtual void StartWriteback(uint64_t offset, uint64_t size) = 0;
};

enum class OpenMode {
  kRead,       // must exist
  kReadWrite,  // must exist
  kCreate,     // must not exist; read and write
  kOpenOrCreate,
};

struct FileFacts {
  uint64_t size = 0;
  bool is_directory = false;
};

struct SpaceFacts {
  uint64_t block_size = 0;
  uint64_t total_blocks = 0;
  uint64_t available_blocks = 0;  // to a process without privilege
  uint64_t total_files = 0;
  uint64_t available_files = 0;
};

class FileIo {
 public:
  virtual ~FileIo() = default;

  virtual Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;  // replaces
  virtual Status Remove(const std::string& path) = 0;
  virtual Status MakeDirectory(const std::string& path) = 0;  // kExists when it is there
  virtual Status RemoveDirectory(const std::string& path) = 0;
  // Makes the names in it durable (fsync of the directory).
  virtual Status SyncDirectory(const std::string& path) = 0;
  // The names in it, sorted; without "." and "..".
  virtual Result<std::vector<std::string>> List(const std::string& path) = 0;
  virtual Result<FileFacts> Stat(const std::string& path) = 0;  // kNotFound
  virtual Result<SpaceFacts> Space() = 0;

  // The root directory as the user named it, for messages and for programs outside.
  virtual const std::string& root() const = 0;
};

// The directory `root`, which must exist and be a directory itself, not a link to one.
Result<std::unique_ptr<FileIo>> OpenRealIo(const std::string& root);

// Whole small files. WriteFileAtomically: temporary name, sync, rename, sync of the directory.
Result<Bytes> ReadWholeFile(FileIo& io, const std::string& path);
// CreateAnew: an empty file, never one that is there: what had the name, a leftover or a link to
// somebody's file, loses it and is not written to.
Result<std::unique_ptr<File>> CreateAnew(FileIo& io, const std::string& path);
Status WriteFileAtomically(FileIo& io, const std::string& path, ByteView data);

// The directory part of a path; "." for a name in the root.
std::string ParentOf(const std::string& path);

}  // namespace memoirfs
