// Size and attributes of an inode. On a clean inode a change is a record at once; on a dirty or
// uncommitted one it joins the commit to come.

#include "fs/vfs/live_inode.h"

namespace memoirfs::vfs {
namespace {

// What a write, a truncation or a change of owner takes away from a file: S_ISUID, and S_ISGID
// where it means "run as this group".
uint32_t WithoutPrivileges(uint32_t mode) {
  mode &= ~uint32_t{S_ISUID};
  if ((mode & S_IXGRP) != 0) mode &= ~uint32_t{S_ISGID};
  return mode;
}

Attributes Changed(const AttributeChange& change, Attributes attributes, Nanos now) {
  const bool new_owner = change.uid || change.gid;
  if (change.uid) attributes.uid = *change.uid;
  if (change.gid) attributes.gid = *change.gid;
  if ((new_owner || change.kill_privileges) && !attributes.IsDirectory()) {
    attributes.mode = WithoutPrivileges(attributes.mode);
  }
  if (change.mode) attributes.mode = (attributes.mode & S_IFMT) | (*change.mode & 07777);
  if (change.atime_now) attributes.atime = now;
  if (change.atime) attributes.atime = *change.atime;
  if (change.mtime_now || change.size) attributes.mtime = now;
  if (change.mtime) attributes.mtime = *change.mtime;
  attributes.ctime = change.ctime.value_or(now);
  return attributes;
}

// Whether nothing is asked for but that the file loses its privileges. It is asked for chown(2)
// without an owner, which is its owner's to do, and in front of writes, which take them away by
// themselves: of others it is ignored.
bool IsOthersPrivilegeLoss(const AttributeChange& change, const Attributes& attributes,
                           uint32_t uid) {
  AttributeChange only;
  only.kill_privileges = true;
  return change == only && uid != 0 && uid != attributes.uid;
}

Status CheckSize(const AttributeChange& change, const Attributes& attributes) {
  if (!change.size) return {};
  if (attributes.IsDirectory()) return Status(Code::kIsDirectory, "truncate: a directory");
  if (!attributes.IsRegular()) return Status(Code::kInvalidArgument, "truncate: not a file");
  if (*change.size > kMaxFileSize) return Status(Code::kTooLarge, "truncate: above 2^52 bytes");
  return {};
}

}  // namespace

void LiveInode::ClearPrivileges() { attributes_.mode = WithoutPrivileges(attributes_.mode); }

// Of a file that no record knows a crash leaves zeros up to the noted size. That is what it holds
// until its first write; later it would be neither the old nor the new, and the file comes back
// empty, unless a note says otherwise already.
bool LiveInode::MustNoteTruncation() const {
  return !unlinked_ && (committed_ || truncation_noted_ || !buffer_->content().has_data());
}

// `note`: the commit is not to follow at once, so a crash of the daemon must not lose this.
Status LiveInode::ResizeAndNote(uint64_t size, bool note) {
  const bool changes = buffer_->size() != size;
  const bool noted = changes && note && MustNoteTruncation();
  if (noted) {
    TRY(volume_.NoteTruncation(key_.stream, key_.ino, size));
    truncation_noted_ = true;
  }
  const Status resized = buffer_->Resize(size);
  if (!resized.ok() && noted) {
    // A crash must not cut what the caller was told is as it was; if this fails too, the caller's
    // error is the first one.
    const auto inode = volume_.GetInode(key_.stream, key_.ino);
    if (inode.ok()) {
      (void)volume_.NoteTruncation(key_.stream, key_.ino, inode->content.size).ok();
    }
  }
  return resized;
}

Status LiveInode::TruncateAtOpen(bool kill_privileges, const ChangeBy& by) {
  MutexLock commit(commit_);
  WriterLock lock(content_);
  TRY(Load());
  TRY(BeginChange());
  TRY(ResizeAndNote(0, true));
  if (kill_privileges) ClearPrivileges();
  Touch();
  // Not a write: a shell closes duplicates of the descriptor before the first write, and what it
  // truncates and rewrites is one version.
  EndChange(by, false);
  return {};
}

Status LiveInode::ChangeAttributes(const AttributeChange& change, const ChangeBy& by) {
  MutexLock commit(commit_);
  bool commit_now = false;
  TRY(ApplyAttributes(change, by, &commit_now));
  return commit_now ? CommitLocked() : Status();
}

Status LiveInode::ApplyAttributes(const AttributeChange& change, const ChangeBy& by,
                                  bool* commit_now) {
  WriterLock lock(content_);
  TRY(Load());
  TRY(BeginChange());
  TRY(CheckSize(change, attributes_));
  if (IsOthersPrivilegeLoss(change, attributes_, by.actor.uid)) return {};
  const bool through_handle = by.marks != nullptr;
  const Attributes next = Changed(change, attributes_, volume_.clock().Now());
  if (!change.size && !pending_ && !unlinked_) {
    const auto recorded = volume_.SetAttributes(key_.stream, key_.ino, next, by.actor);
    if (!recorded.ok() || recorded->nlink != 0) return recorded.status();
    unlinked_ = true;  // just now: it is kept here, for open handles
  }
  if (change.size) TRY(ResizeAndNote(*change.size, through_handle));
  attributes_ = next;
  EndChange(by, change.size && *change.size != 0);
  *commit_now = change.size && !through_handle;
  return {};
}

Status LiveInode::ChangeOrphanXattr(const std::string& name, const std::optional<Bytes>& value,
                                    const ChangeBy& by) {
  constexpr size_t kMostValues = 16;  // in memory, of up to 64 KiB each
  TRY(volume::CheckXattr(name, value));
  if (handles == 0) return Status(Code::kNotFound, "the inode has no name");
  WriterLock lock(content_);
  if (orphan_xattrs_.size() >= kMostValues && orphan_xattrs_.count(name) == 0) {
    return Status(Code::kNoSpace, "too many attributes of a file without a name");
  }
  TRY(Load());
  TRY(BeginChange());
  orphan_xattrs_[name] = value;
  attributes_.ctime = volume_.clock().Now();
  unlinked_ = true;  // the volume says so, whose word may come before NoteNames
  EndChange(by, false);
  return {};
}

LiveInode::XattrChanges LiveInode::orphan_xattrs() {
  ReaderLock lock(content_);
  return orphan_xattrs_;
}

}  // namespace memoirfs::vfs
