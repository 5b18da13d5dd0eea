#include "store/volume/apply.h"

#include <algorithm>
#include <map>

namespace memoirfs::volume {
namespace {

using chain::Change;
using chain::Op;
using meta::InodeRow;

Status DoesNotFit(const Change& change, std::string_view why) {
  return Status(Code::kCorrupt, "a record of " + std::string(OpName(change.op)) + " on inode " +
                                    std::to_string(change.ino.value) +
                                    " does not fit: " + std::string(why));
}

// Edits the tree of one stream for one record: rows are read once, changed in memory and written at
// the end.
class TreeEditor {
 public:
  TreeEditor(const Tables& tables, const RecordPlace& place, const Change& change,
             meta::Batch& batch)
      : tables_(tables), place_(place), change_(change), batch_(batch) {}

  Status Apply();

 private:
  // A row that is about to be changed, or the failure that there is none.
  Result<InodeRow*> Row(InodeId ino);
  InodeRow* NewRow(InodeId ino);
  // Marks what the record says of the inode itself: kept as a version.
  void Touch(InodeRow* row) { row->seq = place_.seq; }

  Status AddEntry(InodeId parent, const std::string& name, InodeId ino, Cookie cookie, Nanos time);
  Status RemoveEntry(InodeId parent, const std::string& name, InodeId ino, Nanos time);
  Status DropLink(InodeId ino, Nanos time);
  void AddHistory(InodeId parent, const std::string& name, InodeId ino);

  Status Genesis();
  Status Put();
  Status MakeEntry(uint32_t nlink);
  Status Link();
  Status Remove();
  Status Rename();
  Status Exchange();
  Status SetAttributes();
  Status SetXattr();
  Status Dispatch();
  void Finish();

  const Tables& tables_;
  const RecordPlace& place_;
  const Change& change_;
  meta::Batch& batch_;
  std::map<InodeId, InodeRow> rows_;
};

Result<InodeRow*> TreeEditor::Row(InodeId ino) {
  const auto found = rows_.find(ino);
  if (found != rows_.end()) return &found->second;
  ASSIGN_OR_RETURN(const auto row, tables_.Inode(place_.stream, ino));
  if (!row) return DoesNotFit(change_, "there is no inode " + std::to_string(ino.value));
  return &rows_.emplace(ino, *row).first->second;
}

InodeRow* TreeEditor::NewRow(InodeId ino) {
  InodeRow row;
  row.attributes = change_.attributes.value_or(Attributes{});
  row.content = change_.content.value_or(EmptyContent());
  return &rows_.insert_or_assign(ino, row).first->second;
}

// A created file is recorded later than it was made: what changed the directory since then, its
// times included, stays. The ctime tells, as nobody can set that one.
void TouchDirectory(InodeRow* dir, Nanos time) {
  if (time <= dir->attributes.ctime) return;
  dir->attributes.mtime = time;
  dir->attributes.ctime = time;
}

Status TreeEditor::AddEntry(InodeId parent, const std::string& name, InodeId ino, Cookie cookie,
                            Nanos time) {
  ASSIGN_OR_RETURN(InodeRow* const dir, Row(parent));
  ASSIGN_OR_RETURN(InodeRow* const row, Row(ino));
  if (!dir->attributes.IsDirectory()) return DoesNotFit(change_, "its parent is no directory");
  const uint32_t type = row->attributes.mode & S_IFMT;
  batch_.Put(meta::DentryKey(place_.stream, parent, name),
             meta::DentryRow{ino, cookie, type}.Encode());
  batch_.Put(meta::CookieKey(place_.stream, parent, cookie),
             meta::CookieRow{name, ino, type}.Encode());
  AddHistory(parent, name, ino);
  row->parent = parent;
  row->name = name;
  if (row->attributes.IsDirectory()) ++dir->nlink;
  TouchDirectory(dir, time);
  return {};
}

Status TreeEditor::RemoveEntry(InodeId parent, const std::string& name, InodeId ino, Nanos time) {
  ASSIGN_OR_RETURN(const auto entry, tables_.Dentry(place_.stream, parent, name));
  if (!entry || entry->ino != ino) return DoesNotFit(change_, "'" + name + "' leads elsewhere");
  batch_.Delete(meta::DentryKey(place_.stream, parent, name));
  batch_.Delete(meta::CookieKey(place_.stream, parent, entry->cookie));
  AddHistory(parent, name, InodeId());
  ASSIGN_OR_RETURN(InodeRow* const dir, Row(parent));
  if (entry->type == S_IFDIR) --dir->nlink;
  TouchDirectory(dir, time);
  return {};
}

// One name less. An inode without names stays as an orphan, for handles that are open, until the
// store is opened anew.
Status TreeEditor::DropLink(InodeId ino, Nanos time) {
  ASSIGN_OR_RETURN(InodeRow* const row, Row(ino));
  row->nlink = row->attributes.IsDirectory() || row->nlink == 0 ? 0 : row->nlink - 1;
  row->attributes.ctime = std::max(row->attributes.ctime, time);
  Touch(row);
  if (row->nlink == 0) batch_.Put(meta::OrphanKey(place_.stream, ino), {});
  return {};
}

void TreeEditor::AddHistory(InodeId parent, const std::string& name, InodeId ino) {
  if (place_.seq == Seq()) return;
  batch_.Put(meta::NameHistoryKey(place_.stream, parent, name, place_.seq),
             meta::NameHistoryRow{ino}.Encode());
}

Status TreeEditor::Genesis() {
  InodeRow* const root = NewRow(kRootInode);
  root->nlink = 2;
  root->parent = kRootInode;
  Touch(root);
  return {};
}

Status TreeEditor::MakeEntry(uint32_t nlink) {
  InodeRow* const row = NewRow(change_.ino);
  row->nlink = nlink;
  Touch(row);
  return AddEntry(change_.parent, change_.name, change_.ino, change_.cookie, row->attributes.btime);
}

Status TreeEditor::Put() {
  if (!change_.attributes) return DoesNotFit(change_, "it has no attributes");
  if (!change_.name.empty()) return MakeEntry(1);
  ASSIGN_OR_RETURN(InodeRow* const row, Row(change_.ino));
  if (!change_.content) return DoesNotFit(change_, "it has no content");
  row->attributes = *change_.attributes;
  row->content = *change_.content;
  Touch(row);
  return {};
}

Status TreeEditor::Link() {
  ASSIGN_OR_RETURN(InodeRow* const row, Row(change_.ino));
  ++row->nlink;
  row->attributes.ctime = std::max(row->attributes.ctime, place_.ts);
  Touch(row);
  return AddEntry(change_.parent, change_.name, change_.ino, change_.cookie, place_.ts);
}

Status TreeEditor::Remove() {
  TRY(RemoveEntry(change_.parent, change_.name, change_.ino, place_.ts));
  return DropLink(change_.ino, place_.ts);
}

Status TreeEditor::Rename() {
  if (change_.exchange) return Exchange();
  TRY(RemoveEntry(change_.parent, change_.name, change_.ino, place_.ts));
  if (change_.replaced) {
    TRY(RemoveEntry(change_.new_parent, change_.new_name, *change_.replaced, place_.ts));
    TRY(DropLink(*change_.replaced, place_.ts));
  }
  ASSIGN_OR_RETURN(InodeRow* const row, Row(change_.ino));
  row->attributes.ctime = std::max(row->attributes.ctime, place_.ts);
  Touch(row);
  return AddEntry(change_.new_parent, change_.new_name, change_.ino, change_.cookie, place_.ts);
}

Status TreeEditor::Exchange() {
  if (!change_.replaced) return DoesNotFit(change_, "an exchange names no second inode");
  TRY(RemoveEntry(change_.parent, change_.name, change_.ino, place_.ts));
  TRY(RemoveEntry(change_.new_parent, change_.new_name, *change_.replaced, place_.ts));
  for (const InodeId ino : {change_.ino, *change_.replaced}) {
    ASSIGN_OR_RETURN(InodeRow* const row, Row(ino));
    row->attributes.ctime = std::max(row->attributes.ctime, place_.ts);
    Touch(row);
  }
  TRY(AddEntry(change_.new_parent, change_.new_name, change_.ino, change_.cookie, place_.ts));
  return AddEntry(change_.parent, change_.name, *change_.replaced, change_.other_cookie, place_.ts);
}

Status TreeEditor::SetAttributes() {
  if (!change_.attributes) return DoesNotFit(change_, "it has no attributes");
  ASSIGN_OR_RETURN(InodeRow* const row, Row(change_.ino));
  row->attributes = *change_.attributes;
  Touch(row);
  return {};
}

Status TreeEditor::SetXattr() {
  ASSIGN_OR_RETURN(InodeRow* const row, Row(change_.ino));
  row->attributes.ctime = std::max(row->attributes.ctime, place_.ts);
  Touch(row);
  Bytes key = meta::XattrKey(place_.stream, change_.ino, change_.xattr_name);
  if (change_.content) {
    batch_.Put(std::move(key), meta::EncodeContentRow(*change_.content));
  } else {
    batch_.Delete(std::move(key));
  }
  return {};
}

Status TreeEditor::Dispatch() {
  switch (change_.op) {
    case Op::kGenesis:
      return Genesis();
    case Op::kPut:
      return Put();
    case Op::kMkdir:
      return MakeEntry(2);
    case Op::kSymlink:
      return MakeEntry(1);
    case Op::kLink:
      return Link();
    case Op::kUnlink:
    case Op::kRmdir:
      return Remove();
    case Op::kRename:
      return Rename();
    case Op::kAttr:
      return SetAttributes();
    case Op::kXattr:
      return SetXattr();
    default:
      return {};  // says something about the stream, not about its tree
  }
}

void TreeEditor::Finish() {
  for (const auto& [ino, row] : rows_) {
    batch_.Put(meta::InodeKey(place_.stream, ino), row.Encode());
    // A directory's times follow its entries; a version is what a record said of the inode.
    if (place_.seq != Seq() && row.seq == place_.seq) {
      batch_.Put(meta::VersionKey(place_.stream, ino, place_.seq), row.Encode());
    }
  }
}

Status TreeEditor::Apply() {
  TRY(Dispatch());
  Finish();
  return {};
}

// `agent rm` and `agent add` of a removed one are events of the chain.
std::optional<bool> AgentRemoval(const Change& change) {
  if (change.op != Op::kEvent) return std::nullopt;
  if (change.detail == kAgentRemoved) return true;
  if (change.detail == kAgentRestored) return false;
  return std::nullopt;
}

}  // namespace

Status ApplyChange(const Tables& tables, const RecordPlace& place, const Change& change,
                   meta::Batch& batch) {
  TRY(TreeEditor(tables, place, change, batch).Apply());
  if (place.seq == Seq()) return {};
  ASSIGN_OR_RETURN(auto row, tables.Stream(place.stream));
  meta::StreamRow stream = row.value_or(meta::StreamRow{});
  stream.agent = place.agent;
  stream.seq = place.seq;
  stream.hash = place.hash;
  stream.ts = place.ts;
  stream.next_id = std::max({stream.next_id, kRootInode.value + 1, change.ino.value + 1,
                             change.cookie.value + 1, change.other_cookie.value + 1});
  if (const auto removed = AgentRemoval(change)) stream.removed = *removed;
  batch.Put(meta::StreamKey(place.stream), stream.Encode());
  return {};
}

std::vector<Bytes> PendingKeys(StreamId stream, const Change& create) {
  return {meta::DentryKey(stream, create.parent, create.name),
          meta::CookieKey(stream, create.parent, create.cookie),
          meta::InodeKey(stream, create.ino)};
}

}  // namespace memoirfs::volume
