#pragma once

// Typed reading of the index. Thread-safe; holds nothing but a reference.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/meta/index.h"
#include "store/meta/schema.h"

namespace memoirfs::volume {

class Tables {
 public:
  explicit Tables(const meta::Index& index) : index_(index) {}

  // nullopt where there is no such row.
  Result<std::optional<meta::InodeRow>> Inode(StreamId stream, InodeId ino) const;
  Result<std::optional<meta::DentryRow>> Dentry(StreamId stream, InodeId parent,
                                                std::string_view name) const;
  Result<std::optional<ContentId>> Xattr(StreamId stream, InodeId ino, std::string_view name) const;
  Result<std::optional<journal::Location>> Location(const Digest& digest) const;
  Result<std::optional<meta::StreamRow>> Stream(StreamId stream) const;

  Result<bool> IsEmptyDirectory(StreamId stream, InodeId dir) const;
  Result<bool> Has(ByteView key) const;

  // The newest version of an inode that record `seq` or an earlier one left.
  Result<std::optional<meta::InodeRow>> VersionAt(StreamId stream, InodeId ino, Seq seq) const;
  // What a name led to after record `seq`; nullopt when to nothing.
  Result<std::optional<InodeId>> NameAt(StreamId stream, InodeId parent, std::string_view name,
                                        Seq seq) const;

  // The path of an inode within its tree, by where inodes were named last: for people. "" for the
  // root.
  std::string PathOf(StreamId stream, InodeId ino) const;
  std::string PathOf(StreamId stream, InodeId parent, std::string_view name) const;

  const meta::Index& index() const { return index_; }

 private:
  const meta::Index& index_;
};

}  // namespace memoirfs::volume
