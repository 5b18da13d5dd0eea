#include "store/volume/tables.h"

namespace memoirfs::volume {
namespace {

// A tree deeper than this does not come from here: a damaged index could hold a cycle.
constexpr int kMaxDepth = 10'000;

template <typename Row>
Result<std::optional<Row>> Decoded(const Result<std::optional<Bytes>>& raw,
                                   Result<Row> (*decode)(ByteView)) {
  TRY(raw);
  if (!raw->has_value()) return std::optional<Row>();
  ASSIGN_OR_RETURN(Row row, decode(**raw));
  return std::optional<Row>(std::move(row));
}

// The first row at or behind `start` within `prefix`.
Result<std::optional<Bytes>> FirstFrom(const meta::Index& index, ByteView prefix, ByteView start) {
  std::optional<Bytes> found;
  TRY(index.Scan(prefix, start, [&](ByteView, ByteView value) {
    found.emplace(value);
    return false;
  }));
  return found;
}

}  // namespace

Result<std::optional<meta::InodeRow>> Tables::Inode(StreamId stream, InodeId ino) const {
  return Decoded(index_.Get(meta::InodeKey(stream, ino)), &meta::InodeRow::Decode);
}

Result<std::optional<meta::DentryRow>> Tables::Dentry(StreamId stream, InodeId parent,
                                                      std::string_view name) const {
  return Decoded(index_.Get(meta::DentryKey(stream, parent, name)), &meta::DentryRow::Decode);
}

Result<std::optional<ContentId>> Tables::Xattr(StreamId stream, InodeId ino,
                                               std::string_view name) const {
  return Decoded(index_.Get(meta::XattrKey(stream, ino, name)), &meta::DecodeContentRow);
}

Result<std::optional<journal::Location>> Tables::Location(const Digest& digest) const {
  return Decoded(index_.Get(meta::LocationKey(digest)), &meta::DecodeLocation);
}

Result<std::optional<meta::StreamRow>> Tables::Stream(StreamId stream) const {
  return Decoded(index_.Get(meta::StreamKey(stream)), &meta::StreamRow::Decode);
}

Result<bool> Tables::IsEmptyDirectory(StreamId stream, InodeId dir) const {
  const Bytes prefix = meta::DentryPrefix(stream, dir);
  ASSIGN_OR_RETURN(const auto first, FirstFrom(index_, prefix, prefix));
  return !first.has_value();
}

Result<bool> Tables::Has(ByteView key) const {
  ASSIGN_OR_RETURN(const auto value, index_.Get(key));
  return value.has_value();
}

Result<std::optional<meta::InodeRow>> Tables::VersionAt(StreamId stream, InodeId ino,
                                                        Seq seq) const {
  // Newest first: the first key at or behind this one is the newest that is not newer than `seq`.
  return Decoded(
      FirstFrom(index_, meta::VersionPrefix(stream, ino), meta::VersionKey(stream, ino, seq)),
      &meta::InodeRow::Decode);
}

Result<std::optional<InodeId>> Tables::NameAt(StreamId stream, InodeId parent,
                                              std::string_view name, Seq seq) const {
  ASSIGN_OR_RETURN(const auto row,
                   Decoded(FirstFrom(index_, meta::NameHistoryPrefix(stream, parent, name),
                                     meta::NameHistoryKey(stream, parent, name, seq)),
                           &meta::NameHistoryRow::Decode));
  if (!row || row->ino == InodeId()) return std::optional<InodeId>();
  return std::optional<InodeId>(row->ino);
}

std::string Tables::PathOf(StreamId stream, InodeId ino) const {
  std::string path;
  for (int depth = 0; ino != kRootInode && depth < kMaxDepth; ++depth) {
    const auto row = Inode(stream, ino);
    if (!row.ok() || !row->has_value() || (*row)->name.empty()) break;
    path.insert(0, path.empty() ? (*row)->name : (*row)->name + "/");
    ino = (*row)->parent;
  }
  return path;
}

std::string Tables::PathOf(StreamId stream, InodeId parent, std::string_view name) const {
  std::string path = PathOf(stream, parent);
  if (!path.empty()) path += '/';
  return path += name;
}

}  // namespace memoirfs::volume
