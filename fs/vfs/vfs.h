#pragma once

// The file system without FUSE: what each request does. One Vfs serves a store for all mounts; one
// View is what one mount shows. Dirty content belongs to the inode in the Vfs, so that every
// opener, in any mount, sees it at once.
//
// Thread-safe. Only Fsync and FsyncDirectory wait for the journal's barrier. But what commits a
// file of more than 4 MiB of new objects (Flush, Release, CommitAll, a truncation by path; Rename,
// MakeLink and changes of xattrs, which commit first; Write, where too much is dirty) waits until
// its bulk pack is synced.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/attributes.h"
#include "store/base/bytes.h"
#include "store/base/status.h"
#include "store/base/types.h"
#include "store/volume/volume.h"

namespace memoirfs::vfs {

// The kernel's number of a node: stream << 40 | inode; stream 0 is for the virtual nodes of
// section "What a mount shows" in fs/README.md. 1 is the root of a mount.
using NodeId = Strong<struct NodeIdTag, uint64_t>;
using HandleId = Strong<struct HandleIdTag, uint64_t>;

// Who asks.
struct Caller {
  uint32_t uid = 0;
  uint32_t gid = 0;
  int32_t pid = 0;
  uint32_t umask = 0;
  bool keeps_privileges = false;  // suid and sgid of a file stay when he changes its bytes
};

struct Node {
  NodeId id;
  Attributes attributes;
  uint32_t nlink = 0;
  uint64_t size = 0;      // bytes
  uint64_t blocks = 0;    // of 512 bytes
  bool cacheable = true;  // false: the attributes change unannounced; ask each time
};

struct AttributeChange {
  std::optional<uint32_t> mode, uid, gid;
  std::optional<uint64_t> size;
  std::optional<Nanos> atime, mtime, ctime;
  bool atime_now = false, mtime_now = false;
  bool kill_privileges = false;  // a write or a chown by one who may not keep suid and sgid
  friend bool operator==(const AttributeChange&, const AttributeChange&) = default;
};

struct Opened {
  HandleId handle;
  bool keep_cache = true;  // the kernel's pages of this file are still right
  bool direct_io = false;  // virtual files whose size is not known before
};

struct DirectoryEntry {
  std::string name;
  Node node;             // attributes only when they were asked for
  uint64_t next_offset;  // where the listing goes on behind this entry
};

struct FileSystemFacts {
  uint64_t block_size = 0, blocks = 0, available_blocks = 0, files = 0, available_files = 0;
};

// Told of changes that came through another mount or from outside, so that the kernel of this
// mount forgets what it cached. Called on a thread of its own, with no lock held; AttributesChanged
// also on the thread of a request. Implementations must tolerate nodes that the kernel does not
// know.
class KernelNotifier {
 public:
  virtual ~KernelNotifier() = default;
  virtual void EntryChanged(NodeId parent, const std::string& name) = 0;  // then the directory too
  virtual void ContentChanged(NodeId node) = 0;                           // pages and attributes
  virtual void AttributesChanged(NodeId node) = 0;
};

struct VfsOptions {
  uint64_t dirty_budget = 256ULL << 20;  // bytes not committed, over all files
  Nanos autosave_idle = 5'000'000'000;   // commit what is dirty and untouched for so long
  Nanos autosave_age = 30'000'000'000;   // and what is dirty for so long
  bool background = true;                // the janitor's thread
};

struct ViewOptions {
  std::optional<std::string> agent;  // only this one, at the root
  bool read_only = false;
};

class Vfs;

class View {
 public:
  virtual ~View() = default;

  virtual Result<Node> Lookup(NodeId parent, std::string_view name) = 0;
  virtual Result<Node> GetAttributes(NodeId node) = 0;
  virtual Result<Node> SetAttributes(NodeId node, const AttributeChange& change,
                                     std::optional<HandleId> handle, const Caller& caller) = 0;
  virtual Result<std::string> ReadLink(NodeId node) = 0;
  // Fifos, sockets and regular files; kPermission for devices.
  virtual Result<Node> MakeNode(NodeId parent, const std::string& name, uint32_t mode,
                                uint64_t rdev, const Caller& caller) = 0;
  virtual Result<Node> MakeDirectory(NodeId parent, const std::string& name, uint32_t mode,
                                     const Caller& caller) = 0;
  virtual Result<Node> MakeSymlink(NodeId parent, const std::string& name,
                                   const std::string& target, const Caller& caller) = 0;
  virtual Result<Node> MakeLink(NodeId node, NodeId new_parent, const std::string& new_name,
                                const Caller& caller) = 0;
  virtual Status Unlink(NodeId parent, const std::string& name, const Caller& caller) = 0;
  virtual Status RemoveDirectory(NodeId parent, const std::string& name, const Caller& caller) = 0;
  virtual Status Rename(NodeId parent, const std::string& name, NodeId new_parent,
                        const std::string& new_name, volume::RenameMode mode,
                        const Caller& caller) = 0;

  struct Created {
    Node node;
    Opened opened;
  };
  virtual Result<Created> Create(NodeId parent, const std::string& name, uint32_t mode,
                                 int open_flags, const Caller& caller) = 0;
  virtual Result<Opened> Open(NodeId node, int open_flags, const Caller& caller) = 0;
  virtual Result<Bytes> Read(HandleId handle, uint64_t offset, size_t size) = 0;
  // With O_APPEND in `open_flags` of the handle the offset is the file's end, whatever is given;
  // but for `writeback`: what was changed through a mapping has its place.
  virtual Result<size_t> Write(HandleId handle, uint64_t offset, ByteView data, bool writeback,
                               const Caller& caller) = 0;
  virtual Status Flush(HandleId handle) = 0;
  virtual Status Release(HandleId handle) = 0;
  virtual Status Fsync(HandleId handle) = 0;
  virtual Status FsyncDirectory(NodeId node) = 0;
  virtual Status Allocate(HandleId handle, int mode, uint64_t offset, uint64_t size,
                          const Caller& caller) = 0;
  virtual Result<uint64_t> Seek(HandleId handle, uint64_t offset, int whence) = 0;
  virtual Result<size_t> CopyRange(HandleId from, uint64_t from_offset, HandleId to,
                                   uint64_t to_offset, size_t size, const Caller& caller) = 0;

  // Calls `add` for each entry behind `offset` (0: from the start, with "." and "..") until it
  // returns false (the entry was not taken then).
  using AddEntry = std::function<bool(const DirectoryEntry&)>;
  virtual Status ReadDirectory(NodeId node, uint64_t offset, bool with_attributes,
                               const AddEntry& add) = 0;

  virtual Result<Bytes> GetXattr(NodeId node, const std::string& name) = 0;
  virtual Result<std::vector<std::string>> ListXattrs(NodeId node) = 0;
  // `flags`: XATTR_CREATE, XATTR_REPLACE or 0.
  virtual Status SetXattr(NodeId node, const std::string& name, ByteView value, int flags,
                          const Caller& caller) = 0;
  virtual Status RemoveXattr(NodeId node, const std::string& name, const Caller& caller) = 0;
  virtual Result<FileSystemFacts> StatFileSystem(NodeId node) = 0;

  // Commits what handles of this view left dirty: at unmount.
  virtual Status CommitAll() = 0;
  // When this returns, the kernel is told nothing any more. For that, requests must still be
  // answered: a notification may wait for a lock of the kernel that a request holds.
  virtual void EndNotifications() = 0;
};

class Vfs {
 public:
  Vfs(volume::Volume& volume, VfsOptions options = {});
  ~Vfs();  // every View must be gone

  // kNotFound for an agent that does not exist. `notifier` may be null and outlives the view.
  Result<std::unique_ptr<View>> OpenView(const ViewOptions& options, KernelNotifier* notifier);

  Status CommitAll();
  // What the janitor does: commits what is dirty and due.
  void RunJanitorOnce();

  // Rendered as .memoir/status.json: a JSON object. The daemon adds its own facts with this.
  using StatusSource = std::function<std::string(const std::optional<std::string>& agent)>;
  void SetStatusSource(StatusSource source);

  uint64_t dirty_bytes() const;
  uint64_t open_files() const;
  // An agent of this name came or went: mounts of all agents look anew. Returns when their kernels
  // were told, or after a few seconds where one does not take it. Not for a thread that serves
  // requests: a kernel may wait for one before it takes this.
  void AgentChanged(const std::string& name);

  class Core;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace memoirfs::vfs
