// Names: looking up, making, linking, renaming and removing entries. Each change is checked under
// the stream's mutex and is one record.

#include <algorithm>

#include "store/base/file_name.h"
#include "store/cas/chunk_tree.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

using chain::Change;
using chain::Op;
using meta::DentryRow;
using meta::InodeRow;

// ext4's limit; also far below what the 32-bit field holds.
constexpr uint32_t kMaxLinks = 65'000;

Inode MakeInode(InodeId ino, const InodeRow& row) {
  return Inode{ino, row.attributes, row.nlink, row.content, row.seq, row.parent};
}

Status NoSuchInode(InodeId ino) {
  return Status(Code::kNotFound, "there is no inode " + std::to_string(ino.value));
}

Attributes AttributesOfNew(const NewNode& node, Nanos now) {
  Attributes a;
  a.mode = node.mode;
  a.uid = node.uid;
  a.gid = node.gid;
  a.rdev = node.rdev;
  a.atime = a.mtime = a.ctime = a.btime = now;
  return a;
}

}  // namespace

Result<Inode> Volume::Impl::InodeOf(StreamId stream, InodeId ino) const {
  ASSIGN_OR_RETURN(const auto row, tables_->Inode(stream, ino));
  if (!row) return NoSuchInode(ino);
  return MakeInode(ino, *row);
}

Result<Inode> Volume::Impl::GetInode(StreamId stream, InodeId ino) const {
  return InodeOf(stream, ino);
}

Result<DentryRow> Volume::Impl::EntryAt(StreamId stream, InodeId parent,
                                        std::string_view name) const {
  ASSIGN_OR_RETURN(const auto entry, tables_->Dentry(stream, parent, name));
  if (!entry) return Status(Code::kNotFound, "no such entry");
  return *entry;
}

Result<Entry> Volume::Impl::Lookup(StreamId stream, InodeId parent, std::string_view name) const {
  ASSIGN_OR_RETURN(const DentryRow entry, EntryAt(stream, parent, name));
  return Entry{std::string(name), entry.ino, entry.cookie, entry.type};
}

Result<std::vector<Entry>> Volume::Impl::List(StreamId stream, InodeId dir, Cookie after,
                                              size_t limit) const {
  std::vector<Entry> entries;
  Status failure;
  const Bytes start = meta::CookieKey(stream, dir, Cookie(after.value + 1));
  TRY(index_->Scan(meta::CookiePrefix(stream, dir), start, [&](ByteView key, ByteView value) {
    auto row = meta::CookieRow::Decode(value);
    if (!row.ok()) {
      failure = row.status();
      return false;
    }
    entries.push_back(Entry{std::move(row->name), row->ino, meta::CookieOfKey(key), row->type});
    return entries.size() < limit;
  }));
  TRY(failure);
  return entries;
}

Result<InodeRow> Volume::Impl::LiveDirectory(StreamId stream, InodeId ino) const {
  ASSIGN_OR_RETURN(const auto row, tables_->Inode(stream, ino));
  if (!row || row->nlink == 0) return NoSuchInode(ino);
  if (!row->attributes.IsDirectory()) return Status(Code::kNotDirectory, "not a directory");
  return *row;
}

Status Volume::Impl::CheckNewEntry(StreamId stream, InodeId parent, const std::string& name) const {
  TRY(CheckFileName(name));
  TRY(LiveDirectory(stream, parent));
  ASSIGN_OR_RETURN(const auto entry, tables_->Dentry(stream, parent, name));
  if (entry) return Status(Code::kExists, "the name exists");
  return {};
}

Result<Inode> Volume::Impl::Create(StreamId stream_id, InodeId parent, const std::string& name,
                                   const NewNode& node, const chain::Actor& actor) {
  if (!S_ISREG(node.mode)) return MakeEntry(Op::kPut, stream_id, parent, name, node, "", actor);
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  TRY(CheckNewEntry(stream_id, parent, name));
  Intent intent;
  intent.kind = Intent::Kind::kCreate;
  intent.stream = stream_id;
  ASSIGN_OR_RETURN(intent.ino, NewInode(*stream));
  intent.parent = parent;
  intent.name = name;
  intent.cookie = Cookie(intent.ino.value);
  intent.attributes = AttributesOfNew(node, clock_.Now());
  intent.actor = actor;
  ASSIGN_OR_RETURN(const meta::Batch shown, RowsOfCreate(intent));
  TRY(AppendIntent(*stream, intent, journal::AppendClass::kNormal));
  index_->ApplyPending(shown);
  stream->creates.emplace(intent.ino, intent);
  return InodeOf(stream_id, intent.ino);
}

Result<InodeId> Volume::Impl::NewInode(Stream& stream) {
  if (stream.next_id >> kInodeBits == 0) return InodeId(stream.next_id++);
  return Status(
      Code::kNoSpace,
      "agent '" + stream.agent + "' has used all of its inode numbers. Go on with another agent");
}

// What makes the entry of an uncommitted file visible.
Result<meta::Batch> Volume::Impl::RowsOfCreate(const Intent& create) const {
  meta::Batch batch;
  TRY(ApplyChange(*tables_, RecordPlace{create.stream, {}, {}, {}, {}}, PutOfCreate(create),
                  batch));
  return batch;
}

Change Volume::Impl::PutOfCreate(const Intent& create) {
  Change change;
  change.op = Op::kPut;
  change.ino = create.ino;
  change.parent = create.parent;
  change.name = create.name;
  change.cookie = create.cookie;
  change.attributes = create.attributes;
  change.content = EmptyContent();
  change.actor = create.actor;
  return change;
}

Result<Inode> Volume::Impl::MakeEntry(Op op, StreamId stream_id, InodeId parent,
                                      const std::string& name, const NewNode& node,
                                      const std::string& target, const chain::Actor& actor) {
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  TRY(CheckNewEntry(stream_id, parent, name));
  if (op == Op::kMkdir) {
    ASSIGN_OR_RETURN(const InodeRow dir, LiveDirectory(stream_id, parent));
    if (dir.nlink >= kMaxLinks) return Status(Code::kTooManyLinks, "too many subdirectories");
  }
  Commit commit;
  Change& change = commit.change;
  change.op = op;
  ASSIGN_OR_RETURN(change.ino, NewInode(*stream));
  change.parent = parent;
  change.name = name;
  change.cookie = Cookie(change.ino.value);
  change.attributes = AttributesOfNew(node, clock_.Now());
  change.path = tables_->PathOf(stream_id, parent, name);
  change.actor = actor;
  if (op == Op::kSymlink) {
    const Digest digest = Sha256::Of(target);
    change.content = ContentId{digest, target.size(), ContentKind::kFlat};
    commit.objects.push_back(NewObject{digest, std::make_shared<const Bytes>(target), {}, 0});
  }
  const InodeId ino = change.ino;
  TRY(Append(*stream, std::move(commit)));
  return InodeOf(stream_id, ino);
}

Result<Inode> Volume::Impl::MakeLink(StreamId stream_id, InodeId ino, InodeId new_parent,
                                     const std::string& new_name, const chain::Actor& actor) {
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  ASSIGN_OR_RETURN(const Inode inode, InodeOf(stream_id, ino));
  if (inode.attributes.IsDirectory()) return Status(Code::kPermission, "a link to a directory");
  if (inode.nlink == 0) return NoSuchInode(ino);
  if (inode.nlink >= kMaxLinks) return Status(Code::kTooManyLinks, "too many links");
  if (stream->creates.count(ino) != 0) {
    return Status(Code::kUncommitted, "link of a file that is not committed");
  }
  TRY(CheckNewEntry(stream_id, new_parent, new_name));
  Commit commit;
  commit.change.op = Op::kLink;
  commit.change.ino = ino;
  commit.change.parent = new_parent;
  commit.change.name = new_name;
  commit.change.cookie = NewCookie(*stream);
  commit.change.path = tables_->PathOf(stream_id, new_parent, new_name);
  commit.change.actor = actor;
  TRY(Append(*stream, std::move(commit)));
  return InodeOf(stream_id, ino);
}

// A file that was never committed leaves no record: its rows go, and its intent is cancelled.
Status Volume::Impl::CancelCreate(Stream& stream, const Intent& create) {
  Intent cancel;
  cancel.kind = Intent::Kind::kCancel;
  cancel.stream = create.stream;
  cancel.ino = create.ino;
  ASSIGN_OR_RETURN(const meta::Batch removal, RowsOfRemoval(create.stream, create.parent));
  TRY(AppendIntent(stream, cancel, journal::AppendClass::kReserve));
  index_->DropPending(PendingKeys(create.stream, PutOfCreate(create)));
  stream.truncations.erase(create.ino);
  stream.creates.erase(create.ino);
  index_->ApplyPending(removal);
  return {};
}

// The times of a directory that lost an entry which no record knows. They are seen until the store
// is closed: the next record that changes the directory brings times of its own.
Result<meta::Batch> Volume::Impl::RowsOfRemoval(StreamId stream, InodeId directory) const {
  meta::Batch batch;
  ASSIGN_OR_RETURN(auto row, tables_->Inode(stream, directory));
  if (!row) return batch;
  row->attributes.mtime = row->attributes.ctime = clock_.Now();
  batch.Put(meta::InodeKey(stream, directory), row->Encode());
  return batch;
}

Result<Inode> Volume::Impl::Remove(Op op, StreamId stream_id, InodeId parent,
                                   const std::string& name, const chain::Actor& actor) {
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  ASSIGN_OR_RETURN(const DentryRow entry, EntryAt(stream_id, parent, name));
  const bool is_directory = entry.type == S_IFDIR;
  if (op == Op::kUnlink && is_directory) return Status(Code::kIsDirectory, "a directory");
  if (op == Op::kRmdir && !is_directory) return Status(Code::kNotDirectory, "not a directory");
  if (is_directory) {
    ASSIGN_OR_RETURN(const bool empty, tables_->IsEmptyDirectory(stream_id, entry.ino));
    if (!empty) return Status(Code::kNotEmpty, "the directory is not empty");
  }
  ASSIGN_OR_RETURN(Inode inode, InodeOf(stream_id, entry.ino));
  if (const auto create = stream->creates.find(entry.ino); create != stream->creates.end()) {
    TRY(CancelCreate(*stream, Intent(create->second)));
    inode.nlink = 0;
    inode.attributes.ctime = clock_.Now();
    return inode;
  }
  Commit commit;
  commit.append_class = journal::AppendClass::kReserve;
  commit.change.op = op;
  commit.change.ino = entry.ino;
  commit.change.parent = parent;
  commit.change.name = name;
  commit.change.path = tables_->PathOf(stream_id, parent, name);
  if (inode.attributes.IsRegular()) commit.change.replaced_content = inode.content;
  commit.change.actor = actor;
  TRY(Append(*stream, std::move(commit)));
  ForgetTruncation(*stream, entry.ino);
  return InodeOf(stream_id, entry.ino);
}

// What has no name left is not recorded any more.
void Volume::Impl::ForgetTruncation(Stream& stream, InodeId ino) {
  const auto inode = InodeOf(stream.id, ino);
  if (inode.ok() && inode->nlink == 0) stream.truncations.erase(ino);
}

// rename(2): what may replace what.
Status Volume::Impl::CheckReplaceable(StreamId stream, const DentryRow& moved,
                                      const DentryRow& target) const {
  const bool moves_directory = moved.type == S_IFDIR;
  const bool onto_directory = target.type == S_IFDIR;
  if (moves_directory && !onto_directory) return Status(Code::kNotDirectory, "not a directory");
  if (!moves_directory && onto_directory) return Status(Code::kIsDirectory, "a directory");
  if (!onto_directory) return {};
  ASSIGN_OR_RETURN(const bool empty, tables_->IsEmptyDirectory(stream, target.ino));
  return empty ? Status() : Status(Code::kNotEmpty, "the directory is not empty");
}

// A directory cannot move below itself.
Status Volume::Impl::CheckNotBelow(StreamId stream, InodeId dir, InodeId candidate) const {
  while (candidate != kRootInode) {
    if (candidate == dir) return Status(Code::kInvalidArgument, "a directory into itself");
    ASSIGN_OR_RETURN(const InodeRow row, LiveDirectory(stream, candidate));
    candidate = row.parent;
  }
  return {};
}

Status Volume::Impl::FillRename(Stream& stream, const DentryRow& moved, RenameMode mode,
                                Change& change) {
  ASSIGN_OR_RETURN(const auto target,
                   tables_->Dentry(stream.id, change.new_parent, change.new_name));
  if (moved.type == S_IFDIR) TRY(CheckNotBelow(stream.id, moved.ino, change.new_parent));
  if (mode == RenameMode::kExchange) {
    if (!target) return Status(Code::kNotFound, "nothing to exchange with");
    if (target->type == S_IFDIR) TRY(CheckNotBelow(stream.id, target->ino, change.parent));
    change.exchange = true;
    change.other_cookie = NewCookie(stream);
  } else if (target) {
    if (mode == RenameMode::kNoReplace) return Status(Code::kExists, "the name exists");
    TRY(CheckReplaceable(stream.id, moved, *target));
  }
  if (target) {
    change.replaced = target->ino;
    ASSIGN_OR_RETURN(const Inode replaced, InodeOf(stream.id, target->ino));
    if (replaced.attributes.IsRegular()) change.replaced_content = replaced.content;
  }
  change.cookie = NewCookie(stream);
  return {};
}

Result<std::optional<Inode>> Volume::Impl::Rename(StreamId stream_id, InodeId parent,
                                                  const std::string& name, InodeId new_parent,
                                                  const std::string& new_name, RenameMode mode,
                                                  const chain::Actor& actor) {
  ASSIGN_OR_RETURN(Stream* const stream, FindStream(stream_id));
  const MutexLock lock(stream->mutex);
  TRY(CheckFileName(new_name));
  ASSIGN_OR_RETURN(const DentryRow moved, EntryAt(stream_id, parent, name));
  TRY(LiveDirectory(stream_id, new_parent));
  ASSIGN_OR_RETURN(const auto target, tables_->Dentry(stream_id, new_parent, new_name));
  // rename(2): two names of one inode: nothing is done.
  if (target && target->ino == moved.ino && mode != RenameMode::kNoReplace) {
    return std::optional<Inode>();
  }
  Commit commit;
  Change& change = commit.change;
  change.op = Op::kRename;
  change.ino = moved.ino;
  change.parent = parent;
  change.name = name;
  change.new_parent = new_parent;
  change.new_name = new_name;
  change.path = tables_->PathOf(stream_id, new_parent, new_name);
  if (parent != new_parent) {
    change.detail = chain::RenameDetail(tables_->PathOf(stream_id, parent, name));
  }
  change.actor = actor;
  TRY(FillRename(*stream, moved, mode, change));
  if (stream->creates.count(moved.ino) != 0) {
    return Status(Code::kUncommitted, "rename of a file that is not committed");
  }
  if (target) TRY(SettleReplaced(*stream, target->ino, mode));
  TRY(Append(*stream, std::move(commit)));
  if (!target || mode == RenameMode::kExchange) return std::optional<Inode>();
  ForgetTruncation(*stream, target->ino);
  ASSIGN_OR_RETURN(Inode replaced, InodeOf(stream_id, target->ino));
  return std::optional<Inode>(std::move(replaced));
}

// The first record of a file that nobody committed. A truncation is in it, not in a second record:
// a crash between the two would leave a file that is neither.
Result<Volume::Impl::Commit> Volume::Impl::CommitOfCreate(const Intent& create,
                                                          const std::optional<Intent>& truncation) {
  Commit commit;
  commit.change = PutOfCreate(create);
  commit.change.path = tables_->PathOf(create.stream, create.parent, create.name);
  if (!truncation) return commit;
  ASSIGN_OR_RETURN(commit.change.content,
                   cas::ResizeContent(*objects_, EmptyContent(), truncation->size,
                                      [&](const Digest& digest, Buffer bytes) {
                                        commit.objects.push_back({digest, std::move(bytes), {}, 0});
                                        return Status();
                                      }));
  return commit;
}

// A replaced file that was never committed has no place in the record: it is put first, so that
// the rename has something to replace.
Status Volume::Impl::SettleReplaced(Stream& stream, InodeId ino, RenameMode mode) {
  const auto create = stream.creates.find(ino);
  if (create == stream.creates.end()) return {};
  if (mode == RenameMode::kExchange) {
    return Status(Code::kUncommitted, "exchange of a file that is not committed");
  }
  std::optional<Intent> truncation;
  const auto noted = stream.truncations.find(ino);
  if (noted != stream.truncations.end()) truncation = noted->second;
  ASSIGN_OR_RETURN(Commit commit, CommitOfCreate(create->second, truncation));
  TRY(Append(stream, std::move(commit)));
  stream.creates.erase(ino);
  stream.truncations.erase(ino);
  return {};
}

}  // namespace memoirfs::volume
