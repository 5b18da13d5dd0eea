// Commits of an inode. A commit takes what it needs under the content lock, hashes and appends
// with the commit lock alone, and then drops what did not change meanwhile.

#include <utility>

#include "fs/vfs/content_builder.h"
#include "fs/vfs/live_inode.h"

namespace memoirfs::vfs {

Status LiveInode::Commit() {
  MutexLock commit(commit_);
  return CommitLocked();
}

Status LiveInode::CommitAtFlush(const HandleMarks& marks) {
  MutexLock commit(commit_);
  {
    ReaderLock lock(content_);
    if (marks.written.load(std::memory_order_relaxed) <= committed_generation_) return {};
  }
  return CommitLocked();
}

Status LiveInode::CommitAtRelease(const HandleMarks& marks, bool last) {
  MutexLock commit(commit_);
  {
    ReaderLock lock(content_);
    const bool changed = marks.changed.load(std::memory_order_relaxed) > committed_generation_;
    if (!changed && !last) return {};
  }
  return CommitLocked();
}

Status LiveInode::CommitAnd(const std::function<Status()>& change) {
  MutexLock commit(commit_);
  TRY(CommitLocked());
  return change();
}

Status LiveInode::Relieve() {
  bool spill = false;
  {
    WriterLock lock(content_);
    if (!buffer_) return {};
    spill = unlinked_ || buffer_->dirty_bytes() > cas::kChunkSize;
    if (spill) TRY(buffer_->Spill());
  }
  return spill ? Status() : Commit();
}

Status LiveInode::CommitLocked() {
  std::optional<CommitWork> work = BeginCommit();
  if (!work) return {};
  ContentId content;
  const Result<volume::Inode> recorded = Record(*work, &content);
  EndCommit(std::move(*work), recorded, content);
  return recorded.status();
}

std::optional<LiveInode::CommitWork> LiveInode::BeginCommit() {
  WriterLock lock(content_);
  if (!pending_ || unlinked_) return std::nullopt;
  CommitWork work;
  work.content_changed = buffer_->dirty();
  work.snapshot = buffer_->TakeSnapshot();
  work.attributes = attributes_;
  work.actor = actor_;
  work.generation = generation_;
  work.committed_before = committed_;
  work.truncation_noted = std::exchange(truncation_noted_, false);
  return work;
}

Result<volume::Inode> LiveInode::Record(CommitWork& work, ContentId* content) {
  const ContentId& before = work.snapshot.content.base;
  BuiltContent built{before, {}};
  if (work.content_changed) {
    ASSIGN_OR_RETURN(built, BuildContent(volume_, work.snapshot));
  }
  *content = built.id;
  // A noted truncation needs its put, or a recovery would take it for the last word.
  if (built.id == before && work.committed_before && !work.truncation_noted) {
    return volume_.SetAttributes(key_.stream, key_.ino, work.attributes, work.actor);
  }
  ChunkSessions& sessions = work.snapshot.sessions;
  for (; !sessions.empty(); sessions.pop_back()) TRY(sessions.back()->Finish());
  return volume_.CommitContent(key_.stream, key_.ino, built.id, built.objects, work.attributes,
                               work.actor);
}

void LiveInode::EndCommit(CommitWork work, const Result<volume::Inode>& recorded,
                          const ContentId& content) {
  WriterLock lock(content_);
  if (!recorded.ok()) {
    truncation_noted_ = truncation_noted_ || work.truncation_noted;
    buffer_->PutBack(std::move(work.snapshot));
    return;
  }
  if (recorded->nlink == 0) {
    unlinked_ = true;  // nothing was recorded: the content stays here for open handles
    buffer_->PutBack(std::move(work.snapshot));
    UpdateKeep();
    return;
  }
  buffer_->Rebase(work.snapshot, content);
  committed_ = true;
  committed_generation_ = work.generation;
  pending_ = generation_ != work.generation;
  if (pending_) dirty_since_ = volume_.clock().Monotonic();
  UpdateKeep();
}

}  // namespace memoirfs::vfs
