#pragma once

// Keys and rows of the index. Keys are big-endian, the first byte is the table; rows begin with a
// version byte. Layout: store/FORMAT.md "Index". Decoding answers kCorrupt for anything that is
// not exactly a row of a known version.

#include <cstdint>
#include <optional>
#include <string>

#include "store/base/attributes.h"
#include "store/base/bytes.h"
#include "store/base/coding.h"
#include "store/base/digest.h"
#include "store/base/status.h"
#include "store/base/types.h"
#include "store/journal/frame.h"

namespace memoirfs::meta {

// The first byte of every key.
enum class Table : char {
  kDentry = 'D',
  kCookie = 'C',
  kInode = 'I',
  kVersion = 'V',
  kNameHistory = 'H',
  kXattr = 'X',
  kOrphan = 'O',
  kLocation = 'L',
  kBulk = 'B',
  kStream = 'S',
  kCorrupt = 'Q',
  kCheckpoint = 'M',
};

// All rows of one stream in a table.
Bytes TablePrefix(Table table, StreamId stream);

// 'D' stream parent name: what a name in a directory leads to.
struct DentryRow {
  InodeId ino;
  Cookie cookie;
  uint32_t type = 0;  // S_IFMT bits
  Bytes Encode() const;
  static Result<DentryRow> Decode(ByteView row);
};
Bytes DentryKey(StreamId stream, InodeId parent, std::string_view name);
Bytes DentryPrefix(StreamId stream, InodeId parent);

// 'C' stream parent cookie: the same entry by its place in the order of the directory.
struct CookieRow {
  std::string name;
  InodeId ino;
  uint32_t type = 0;
  Bytes Encode() const;
  static Result<CookieRow> Decode(ByteView row);
};
Bytes CookieKey(StreamId stream, InodeId parent, Cookie cookie);
Bytes CookiePrefix(StreamId stream, InodeId parent);
Cookie CookieOfKey(ByteView key);

// As in an inode's row and in an intent.
void EncodeAttributes(Encoder& out, const Attributes& attributes);
Attributes DecodeAttributes(Decoder& in);

// 'I' stream ino: an inode as it is now. 'V' stream ino ~seq: as each record left it, the newest
// first (only what `put`, `attr`, `symlink` and the like say of the inode itself; not a
// directory's times).
struct InodeRow {
  Attributes attributes;
  uint32_t nlink = 0;
  ContentId content;
  Seq seq;  // of the record that last changed it; 0: not committed yet
  // Where it was named last: a directory's parent, and the path that records show to people.
  InodeId parent;
  std::string name;
  Bytes Encode() const;
  static Result<InodeRow> Decode(ByteView row);
  friend bool operator==(const InodeRow&, const InodeRow&) = default;
};
Bytes InodeKey(StreamId stream, InodeId ino);
InodeId InodeOfKey(ByteView key);  // of an 'I', 'V' or 'X' key
Bytes VersionKey(StreamId stream, InodeId ino, Seq seq);
Bytes VersionPrefix(StreamId stream, InodeId ino);

// 'H' stream parent name '\0' ~seq: what the name led to from that record on; ino 0: to nothing.
struct NameHistoryRow {
  InodeId ino;
  Bytes Encode() const;
  static Result<NameHistoryRow> Decode(ByteView row);
};
Bytes NameHistoryKey(StreamId stream, InodeId parent, std::string_view name, Seq seq);
Bytes NameHistoryPrefix(StreamId stream, InodeId parent, std::string_view name);

// 'X' stream ino name: the object that holds an xattr's value. The row is a ContentId.
Bytes XattrKey(StreamId stream, InodeId ino, std::string_view name);
Bytes XattrPrefix(StreamId stream, InodeId ino);
std::string XattrNameOfKey(ByteView key);
Bytes EncodeContentRow(const ContentId& id);
Result<ContentId> DecodeContentRow(ByteView row);

// 'O' stream ino: an inode without a name that may still be open; dropped when the store is opened.
Bytes OrphanKey(StreamId stream, InodeId ino);
Bytes OrphanPrefix();
struct StreamInode {
  StreamId stream;
  InodeId ino;
};
StreamInode StreamInodeOfOrphanKey(ByteView key);

// 'L' digest: where an object lies.
Bytes LocationKey(const Digest& digest);
Bytes EncodeLocation(const journal::Location& where);
Result<journal::Location> DecodeLocation(ByteView row);

// 'B' number: a bulk pack whose objects are in 'L'.
Bytes BulkKey(uint64_t number);

// 'S' stream: a stream and the last record that the index contains of it.
struct StreamRow {
  std::string agent;
  bool removed = false;  // `agent rm`: the chain stays, the name is not mounted
  Seq seq;
  Digest hash;
  Nanos ts = 0;
  uint64_t next_id = 0;  // of inodes and cookies
  Bytes Encode() const;
  static Result<StreamRow> Decode(ByteView row);
  friend bool operator==(const StreamRow&, const StreamRow&) = default;
};
Bytes StreamKey(StreamId stream);
Bytes StreamPrefix();
StreamId StreamOfKey(ByteView key);

// 'Q' digest: an object that did not verify; the row is the reason, as text.
Bytes CorruptKey(const Digest& digest);
Bytes CorruptPrefix();
Digest DigestOfCorruptKey(ByteView key);

// 'M': where the index stands. `generation` says whose it is: it follows from the store's id, so
// that the index of another store, put in this one's place, is not taken for its own.
struct CheckpointRow {
  journal::Lsn lsn;
  uint64_t generation = 0;
  Bytes Encode() const;
  static Result<CheckpointRow> Decode(ByteView row);
};
Bytes CheckpointKey();

}  // namespace memoirfs::meta
