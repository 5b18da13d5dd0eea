#pragma once

// What one mount shows and does. Operations are grouped by file: nodes and attributes' reading
// (view_nodes.cc), listings, changes of names, open files, changes of attributes and xattrs.
//
// Thread-safe. Holds no lock while it notifies or waits for the journal's barrier; the sync of a
// bulk pack is waited for with the commit lock of its file.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fs/vfs/core.h"
#include "fs/vfs/handle_table.h"
#include "fs/vfs/layout.h"
#include "fs/vfs/node_id.h"

namespace memoirfs::vfs {

// Changes that need a record of the file before theirs commit it first. Another file may have come
// to its name meanwhile, or its maker, who is between making and noting it, be the only one who can
// commit it yet: `attempt`, a Status or a Result, is made again while it is kUncommitted. Both pass
// at once; what does not, a file that cannot be saved, is told as EBUSY in the end.
template <typename Attempt>
auto OnceCommitted(const Attempt& attempt) -> decltype(attempt()) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (true) {
    auto result = attempt();
    if (result.code() != Code::kUncommitted) return result;
    if (std::chrono::steady_clock::now() > deadline) return result;
    std::this_thread::yield();
  }
}

class ViewImpl : public View {
 public:
  ViewImpl(std::shared_ptr<Vfs::Core> core, std::optional<StreamId> only, bool read_only,
           KernelNotifier* notifier);
  ~ViewImpl() override;

  Result<Node> Lookup(NodeId parent, std::string_view name) override;
  Result<Node> GetAttributes(NodeId node) override;
  Result<Node> SetAttributes(NodeId node, const AttributeChange& change,
                             std::optional<HandleId> handle, const Caller& caller) override;
  Result<std::string> ReadLink(NodeId node) override;
  Result<Node> MakeNode(NodeId parent, const std::string& name, uint32_t mode, uint64_t rdev,
                        const Caller& caller) override;
  Result<Node> MakeDirectory(NodeId parent, const std::string& name, uint32_t mode,
                             const Caller& caller) override;
  Result<Node> MakeSymlink(NodeId parent, const std::string& name, const std::string& target,
                           const Caller& caller) override;
  Result<Node> MakeLink(NodeId node, NodeId new_parent, const std::string& new_name,
                        const Caller& caller) override;
  Status Unlink(NodeId parent, const std::string& name, const Caller& caller) override;
  Status RemoveDirectory(NodeId parent, const std::string& name, const Caller& caller) override;
  Status Rename(NodeId parent, const std::string& name, NodeId new_parent,
                const std::string& new_name, volume::RenameMode mode,
                const Caller& caller) override;

  Result<Created> Create(NodeId parent, const std::string& name, uint32_t mode, int open_flags,
                         const Caller& caller) override;
  Result<Opened> Open(NodeId node, int open_flags, const Caller& caller) override;
  Result<Bytes> Read(HandleId handle, uint64_t offset, size_t size) override;
  Result<size_t> Write(HandleId handle, uint64_t offset, ByteView data, bool writeback,
                       const Caller& caller) override;
  Status Flush(HandleId handle) override;
  Status Release(HandleId handle) override;
  Status Fsync(HandleId handle) override;
  Status FsyncDirectory(NodeId node) override;
  Status Allocate(HandleId handle, int mode, uint64_t offset, uint64_t size,
                  const Caller& caller) override;
  Result<uint64_t> Seek(HandleId handle, uint64_t offset, int whence) override;
  Result<size_t> CopyRange(HandleId from, uint64_t from_offset, HandleId to, uint64_t to_offset,
                           size_t size, const Caller& caller) override;

  Status ReadDirectory(NodeId node, uint64_t offset, bool with_attributes,
                       const AddEntry& add) override;

  Result<Bytes> GetXattr(NodeId node, const std::string& name) override;
  Result<std::vector<std::string>> ListXattrs(NodeId node) override;
  Status SetXattr(NodeId node, const std::string& name, ByteView value, int flags,
                  const Caller& caller) override;
  Status RemoveXattr(NodeId node, const std::string& name, const Caller& caller) override;
  Result<FileSystemFacts> StatFileSystem(NodeId node) override;

  Status CommitAll() override;
  void EndNotifications() override { core_->notifications().Remove(id_); }

 private:
  // --- nodes ----------------------------------------------------------------------------------
  // kStale for a number that this mount does not show.
  Result<NodeParts> Resolve(NodeId node) const;
  // As Resolve, and it can be changed: kReadOnly otherwise.
  Result<NodeParts> ResolveForChange(NodeId node) const;
  // A directory in which `name` may come, go or change.
  Result<NodeParts> ResolveForName(NodeId parent, const std::string& name) const;
  Result<Node> NodeFor(const NodeParts& parts);
  Result<Node> RealNodeFor(const NodeParts& parts);
  Result<Node> VirtualNodeFor(const NodeParts& parts);
  Result<NodeParts> Child(const NodeParts& parent, std::string_view name);
  NodeId IdOf(const NodeParts& parts) const;
  Result<Attributes> MemoryAttributes(StreamId stream);  // of <agent>/memory; of the mount for 0
  Result<std::string> RenderStatus(StreamId stream);
  InodeKey KeyOf(const NodeParts& parts) const { return {parts.stream, parts.ino}; }

  // --- listings -------------------------------------------------------------------------------
  bool AddChild(const NodeParts& node, const std::string& name, uint32_t type, uint64_t next_offset,
                bool with_attributes, const AddEntry& add);
  bool AddDots(const NodeParts& directory, uint64_t offset, const AddEntry& add);
  NodeParts ParentOf(const NodeParts& directory);
  Status ListStream(const NodeParts& directory, uint64_t offset, bool with_attributes,
                    const AddEntry& add);
  Status ListAgents(uint64_t offset, bool with_attributes, const AddEntry& add);
  Status ListLayout(const NodeParts& directory, uint64_t offset, bool with_attributes,
                    const AddEntry& add);

  // --- names ----------------------------------------------------------------------------------
  Result<volume::NewNode> NewNodeIn(const NodeParts& parent, uint32_t mode, const Caller& caller);
  Result<Node> Made(const NodeParts& parent, const std::string& name, const volume::Inode& inode);
  // What was made under this name is not to be: its caller gets `failure`.
  Status Undo(const NodeParts& parent, const std::string& name, InodeId made, const Status& failure,
              const chain::Actor& actor);
  Status CommitNamed(const NodeParts& parent, const std::string& name);
  Status RenameWithin(const NodeParts& from, const std::string& name, const NodeParts& to,
                      const std::string& new_name, volume::RenameMode mode,
                      const chain::Actor& actor);
  void NoteNames(StreamId stream, const volume::Inode& inode);

  // --- files ----------------------------------------------------------------------------------
  Result<Created> CreateNew(const NodeParts& parent, const std::string& name, uint32_t mode,
                            int open_flags, const Caller& caller);
  Result<Opened> OpenReal(const NodeParts& parts, int open_flags, const Caller& caller);
  Result<Opened> OpenVirtual(const NodeParts& parts, int open_flags);
  // The last step of each open: nothing that can fail may follow, or nobody would close the handle.
  Opened AddHandle(std::shared_ptr<OpenFile> file);
  // The open file behind a handle, to be changed through it.
  Result<std::shared_ptr<OpenFile>> FileForChange(HandleId handle);
  // As it is, to be read.
  Result<std::shared_ptr<OpenFile>> RealFile(HandleId handle);
  Status WriteTo(OpenFile& file, const WriteRequest& request, const Caller& caller);

  // --- xattrs ---------------------------------------------------------------------------------
  Result<Bytes> FactXattr(const NodeParts& parts, const std::string& name);
  Result<Bytes> UserXattr(const NodeParts& parts, const std::string& name);
  LiveInode::XattrChanges OrphanXattrs(const NodeParts& parts);
  Status CheckXattrFlags(const NodeParts& parts, const std::string& name, bool removes, int flags);
  Status ChangeXattr(NodeId node, const std::string& name, const std::optional<Bytes>& value,
                     int flags, const Caller& caller);

  void NotifyEntry(const NodeParts& parent, const std::string& name);
  void NotifyContent(const NodeParts& node);
  void NotifyAttributes(const NodeParts& node);
  // The virtual nodes of an agent changed with its memory/: this kernel is told too, at once.
  void NotifyLayout(StreamId stream);

  const std::shared_ptr<Vfs::Core> core_;
  volume::Volume& volume_;
  const std::optional<StreamId> only_;  // a mount of one agent
  const bool read_only_;
  KernelNotifier* const notifier_;  // may be null
  const Nanos opened_at_;
  const ViewId id_;
  HandleTable handles_;
};

}  // namespace memoirfs::vfs
