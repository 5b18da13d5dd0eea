#include "fs/vfs/live_inode.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>

namespace memoirfs::vfs {
namespace {

Status TooLarge() { return Status(Code::kTooLarge, "a file has at most 2^52 bytes"); }

}  // namespace

LiveInode::LiveInode(volume::Volume& volume, DirtyBudget& budget, InodeKey key)
    : volume_(volume), budget_(budget), key_(key) {}

// Not done by the constructor: the object must be in the table first, so that no commit of another
// object of the same inode can come between.
Status LiveInode::Load() {
  if (buffer_) return {};
  auto inode = volume_.GetInode(key_.stream, key_.ino);
  if (inode.code() == Code::kNotFound) return Status(Code::kStale, "the inode is gone");
  TRY(inode);
  const bool has_content = inode->attributes.IsRegular();
  buffer_ =
      std::make_unique<FileBuffer>(volume_, budget_, has_content ? inode->content : EmptyContent());
  committed_ = inode->seq.value != 0;
  unlinked_ = inode->nlink == 0;
  return {};
}

Status LiveInode::LoadForReading() {
  {
    ReaderLock lock(content_);
    if (buffer_) return {};
  }
  WriterLock lock(content_);
  return Load();
}

Result<volume::Inode> LiveInode::Get(uint64_t* size) {
  ReaderLock lock(content_);
  Result<volume::Inode> found = volume_.GetInode(key_.stream, key_.ino);
  if (found.code() == Code::kNotFound && pending_) {
    // Removed before its first commit: only open handles know it.
    found = volume::Inode{key_.ino, attributes_, 0, EmptyContent(), Seq{}, InodeId{}};
  }
  ASSIGN_OR_RETURN(volume::Inode inode, std::move(found));
  *size = inode.content.size;
  if (pending_) {
    const Nanos ctime = std::max(inode.attributes.ctime, attributes_.ctime);
    inode.attributes = attributes_;
    inode.attributes.ctime = ctime;
    *size = buffer_->size();
  }
  return inode;
}

Result<Bytes> LiveInode::Read(uint64_t offset, uint64_t size) {
  TRY(LoadForReading());
  ReaderLock lock(content_);
  return buffer_->Read(offset, size);
}

Result<size_t> LiveInode::Write(const WriteRequest& request, const ChangeBy& by) {
  WriterLock lock(content_);
  TRY(Load());
  const uint64_t offset = request.append ? buffer_->size() : request.offset;
  if (offset >= kMaxFileSize || request.data.size() > kMaxFileSize - offset) return TooLarge();
  TRY(BeginChange());
  TRY(buffer_->Write(offset, request.data));
  if (request.kill_privileges) ClearPrivileges();
  Touch();
  EndChange(by, true);
  return request.data.size();
}

Status LiveInode::Allocate(int mode, uint64_t offset, uint64_t size, bool kill_privileges,
                           const ChangeBy& by) {
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const bool punches = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
  const bool zeros = (mode & FALLOC_FL_ZERO_RANGE) != 0;
  const int known = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  if ((mode & ~known) != 0 || (punches && (!keeps_size || zeros))) {
    return Status(Code::kNotSupported, "fallocate: this mode is not supported");
  }
  if (size == 0) return Status(Code::kInvalidArgument, "fallocate: no bytes");
  if (offset >= kMaxFileSize || size > kMaxFileSize - offset) return TooLarge();

  WriterLock lock(content_);
  TRY(Load());
  const bool extends = !keeps_size && offset + size > buffer_->size();
  // Space is never reserved: what a store holds is deduplicated, and written elsewhere each time.
  // The times change all the same.
  TRY(BeginChange());
  if (punches || zeros) TRY(buffer_->Zero(offset, size));
  if (extends) TRY(buffer_->Resize(offset + size));  // to grow cannot fail
  if (kill_privileges) ClearPrivileges();
  Touch();
  EndChange(by, true);
  return {};
}

Result<uint64_t> LiveInode::Seek(uint64_t offset, int whence) {
  TRY(LoadForReading());
  ReaderLock lock(content_);
  if (whence == SEEK_DATA) return buffer_->NextData(offset);
  if (whence == SEEK_HOLE) return buffer_->NextHole(offset);
  return Status(Code::kInvalidArgument, "lseek: only SEEK_DATA and SEEK_HOLE are asked of us");
}

// Attributes are the inode's own from its first uncommitted change on.
Status LiveInode::BeginChange() {
  if (pending_) return {};
  ASSIGN_OR_RETURN(const volume::Inode inode, volume_.GetInode(key_.stream, key_.ino));
  attributes_ = inode.attributes;
  return {};
}

void LiveInode::EndChange(const ChangeBy& by, bool is_write) {
  const Nanos now = volume_.clock().Monotonic();
  if (!pending_) dirty_since_ = now;
  last_change_ = now;
  pending_ = true;
  actor_ = by.actor;
  ++generation_;
  if (by.marks != nullptr) {
    by.marks->changed.store(generation_, std::memory_order_relaxed);
    if (is_write) by.marks->written.store(generation_, std::memory_order_relaxed);
  }
  UpdateKeep();
}

void LiveInode::UpdateKeep() {
  must_keep_.store(pending_ && !unlinked_, std::memory_order_release);
}

void LiveInode::Touch() {
  attributes_.mtime = volume_.clock().Now();
  attributes_.ctime = attributes_.mtime;
}

Status LiveInode::NoteCreated(InodeId parent, const ChangeBy& by) {
  WriterLock lock(content_);
  TRY(Load());
  TRY(BeginChange());
  created_in_ = parent;
  EndChange(by, false);
  return {};
}

void LiveInode::NoteNames(const volume::Inode& inode) {
  WriterLock lock(content_);
  unlinked_ = inode.nlink == 0;
  attributes_.ctime = std::max(attributes_.ctime, inode.attributes.ctime);
  UpdateKeep();
}

bool LiveInode::UncommittedIn(InodeId parent) {
  ReaderLock lock(content_);
  return buffer_ && !committed_ && created_in_ == parent;
}

uint64_t LiveInode::dirty_bytes() {
  ReaderLock lock(content_);
  return buffer_ ? buffer_->dirty_bytes() : 0;
}

bool LiveInode::IsDue(Nanos now, Nanos idle, Nanos age) {
  ReaderLock lock(content_);
  return pending_ && !unlinked_ && (now - last_change_ >= idle || now - dirty_since_ >= age);
}

LiveInode::State LiveInode::state() {
  ReaderLock lock(content_);
  if (!pending_) return State::kClean;
  return committed_ ? State::kDirty : State::kUncommitted;
}

}  // namespace memoirfs::vfs
