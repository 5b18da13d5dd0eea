#pragma once

// A file system in memory behind vfs::View: what tests of fs/fuse mount, and the null file system
// that benchmarks compare with. Nothing is hashed, recorded or stored.
//
// Thread-safe, under one lock. The root is node 1; other nodes belong to stream 1.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "fs/vfs/vfs.h"
#include "store/base/mutex.h"

namespace memoirfs::testing {

class MemoryView : public vfs::View {
 public:
  MemoryView();
  ~MemoryView() override;

  // The kernel is to ask about this node each time, as about a virtual one.
  void SetCacheable(vfs::NodeId node, bool cacheable);
  size_t open_handles() const;

  Result<vfs::Node> Lookup(vfs::NodeId parent, std::string_view name) override;
  Result<vfs::Node> GetAttributes(vfs::NodeId node) override;
  Result<vfs::Node> SetAttributes(vfs::NodeId node, const vfs::AttributeChange& change,
                                  std::optional<vfs::HandleId> handle,
                                  const vfs::Caller& caller) override;
  Result<std::string> ReadLink(vfs::NodeId node) override;
  Result<vfs::Node> MakeNode(vfs::NodeId parent, const std::string& name, uint32_t mode,
                             uint64_t rdev, const vfs::Caller& caller) override;
  Result<vfs::Node> MakeDirectory(vfs::NodeId parent, const std::string& name, uint32_t mode,
                                  const vfs::Caller& caller) override;
  Result<vfs::Node> MakeSymlink(vfs::NodeId parent, const std::string& name,
                                const std::string& target, const vfs::Caller& caller) override;
  Result<vfs::Node> MakeLink(vfs::NodeId node, vfs::NodeId new_parent, const std::string& new_name,
                             const vfs::Caller& caller) override;
  Status Unlink(vfs::NodeId parent, const std::string& name, const vfs::Caller& caller) override;
  Status RemoveDirectory(vfs::NodeId parent, const std::string& name,
                         const vfs::Caller& caller) override;
  Status Rename(vfs::NodeId parent, const std::string& name, vfs::NodeId new_parent,
                const std::string& new_name, volume::RenameMode mode,
                const vfs::Caller& caller) override;
  Result<Created> Create(vfs::NodeId parent, const std::string& name, uint32_t mode, int open_flags,
                         const vfs::Caller& caller) override;
  Result<vfs::Opened> Open(vfs::NodeId node, int open_flags, const vfs::Caller& caller) override;
  Result<Bytes> Read(vfs::HandleId handle, uint64_t offset, size_t size) override;
  Result<size_t> Write(vfs::HandleId handle, uint64_t offset, ByteView data, bool writeback,
                       const vfs::Caller& caller) override;
  Status Flush(vfs::HandleId handle) override;
  Status Release(vfs::HandleId handle) override;
  Status Fsync(vfs::HandleId handle) override;
  Status FsyncDirectory(vfs::NodeId node) override;
  Status Allocate(vfs::HandleId handle, int mode, uint64_t offset, uint64_t size,
                  const vfs::Caller& caller) override;
  Result<uint64_t> Seek(vfs::HandleId handle, uint64_t offset, int whence) override;
  Result<size_t> CopyRange(vfs::HandleId from, uint64_t from_offset, vfs::HandleId to,
                           uint64_t to_offset, size_t size, const vfs::Caller& caller) override;
  Status ReadDirectory(vfs::NodeId node, uint64_t offset, bool with_attributes,
                       const AddEntry& add) override;
  Result<Bytes> GetXattr(vfs::NodeId node, const std::string& name) override;
  Result<std::vector<std::string>> ListXattrs(vfs::NodeId node) override;
  Status SetXattr(vfs::NodeId node, const std::string& name, ByteView value, int flags,
                  const vfs::Caller& caller) override;
  Status RemoveXattr(vfs::NodeId node, const std::string& name, const vfs::Caller& caller) override;
  Result<vfs::FileSystemFacts> StatFileSystem(vfs::NodeId node) override;
  Status CommitAll() override;
  void EndNotifications() override {}

 private:
  struct Inode;
  struct Handle;
  using InodePtr = std::shared_ptr<Inode>;

  Result<InodePtr> Find(vfs::NodeId node) const REQUIRES_SHARED(mutex_);
  Result<InodePtr> FindDirectory(vfs::NodeId node) const REQUIRES_SHARED(mutex_);
  Result<InodePtr> FindChild(vfs::NodeId parent, std::string_view name) const
      REQUIRES_SHARED(mutex_);
  Result<Handle> FindHandle(vfs::HandleId handle) const REQUIRES_SHARED(mutex_);

  Result<InodePtr> Make(vfs::NodeId parent, const std::string& name, uint32_t mode, uint64_t rdev,
                        const vfs::Caller& caller) REQUIRES(mutex_);
  vfs::Opened OpenInode(const InodePtr& inode, int open_flags) REQUIRES(mutex_);
  void AddName(Inode& directory, const std::string& name, const InodePtr& inode) REQUIRES(mutex_);
  void DropName(Inode& directory, const std::string& name) REQUIRES(mutex_);
  Status CheckReplace(const Inode& moved, const Inode& replaced) const REQUIRES_SHARED(mutex_);
  void Exchange(Inode& directory, const std::string& name, Inode& other,
                const std::string& other_name) REQUIRES(mutex_);
  void ForgetUnused(Inode& inode) REQUIRES(mutex_);

  mutable SharedMutex mutex_{LockRank::kLeaf};
  std::unordered_map<vfs::NodeId, InodePtr> inodes_ GUARDED_BY(mutex_);
  std::unordered_map<vfs::HandleId, Handle> handles_ GUARDED_BY(mutex_);
  uint64_t next_inode_ GUARDED_BY(mutex_) = 2;
  uint64_t next_handle_ GUARDED_BY(mutex_) = 1;
};

}  // namespace memoirfs::testing
