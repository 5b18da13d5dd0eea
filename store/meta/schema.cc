#include "store/meta/schema.h"

#include "store/base/coding.h"

namespace memoirfs::meta {
namespace {

constexpr size_t kTableSize = 1;
constexpr size_t kStreamSize = 4;
constexpr size_t kIdSize = 8;  // of an inode, a cookie, a sequence number
constexpr uint8_t kRowVersion = 1;

Encoder KeyOf(Table table) {
  Encoder key;
  key.U8(static_cast<uint8_t>(table));
  return key;
}

Encoder KeyOf(Table table, StreamId stream) {
  Encoder key = KeyOf(table);
  key.U32(stream.value);
  return key;
}

Encoder KeyOf(Table table, StreamId stream, uint64_t id) {
  Encoder key = KeyOf(table, stream);
  key.U64(id);
  return key;
}

// What follows the first `size` bytes of a key; a key that is too short decodes as zeros.
Decoder KeyBehind(ByteView key, size_t size) {
  return Decoder(key.size() < size ? ByteView() : key.substr(size));
}

uint64_t LastIdOf(ByteView key) {
  return KeyBehind(key, key.size() < kIdSize ? 0 : key.size() - kIdSize).U64();
}

Encoder NewRow() {
  Encoder row;
  row.U8(kRowVersion);
  return row;
}

// Decodes a row: its version, then what `read` takes, then nothing. `read` may refuse what it got.
template <typename Row, typename Read>
Result<Row> DecodeRow(ByteView bytes, std::string_view what, Read read) {
  Decoder in(bytes);
  Row row{};
  const bool known = in.U8() == kRowVersion;
  if (known && read(in, row) && in.Done()) return row;
  return Status(Code::kCorrupt, "index: not a row of the table of " + std::string(what) + " (" +
                                    std::to_string(bytes.size()) + " bytes)");
}

}  // namespace

// --- names in directories ---

Bytes DentryKey(StreamId stream, InodeId parent, std::string_view name) {
  return KeyOf(Table::kDentry, stream, parent.value).Raw(name).Take();
}

Bytes DentryPrefix(StreamId stream, InodeId parent) {
  return KeyOf(Table::kDentry, stream, parent.value).Take();
}

Bytes DentryRow::Encode() const {
  return NewRow().U64(ino.value).U64(cookie.value).U32(type).Take();
}

Result<DentryRow> DentryRow::Decode(ByteView row) {
  return DecodeRow<DentryRow>(row, "names", [](Decoder& in, DentryRow& out) {
    out.ino = InodeId(in.U64());
    out.cookie = Cookie(in.U64());
    out.type = in.U32();
    return true;
  });
}

Bytes CookieKey(StreamId stream, InodeId parent, Cookie cookie) {
  return KeyOf(Table::kCookie, stream, parent.value).U64(cookie.value).Take();
}

Bytes CookiePrefix(StreamId stream, InodeId parent) {
  return KeyOf(Table::kCookie, stream, parent.value).Take();
}

Cookie CookieOfKey(ByteView key) { return Cookie(LastIdOf(key)); }

Bytes CookieRow::Encode() const { return NewRow().U64(ino.value).U32(type).String(name).Take(); }

Result<CookieRow> CookieRow::Decode(ByteView row) {
  return DecodeRow<CookieRow>(row, "cookies", [](Decoder& in, CookieRow& out) {
    out.ino = InodeId(in.U64());
    out.type = in.U32();
    out.name = in.String();
    return true;
  });
}

// --- inodes ---

Bytes InodeKey(StreamId stream, InodeId ino) {
  return KeyOf(Table::kInode, stream, ino.value).Take();
}

Bytes TablePrefix(Table table, StreamId stream) { return KeyOf(table, stream).Take(); }

InodeId InodeOfKey(ByteView key) { return InodeId(KeyBehind(key, kTableSize + kStreamSize).U64()); }

Bytes VersionKey(StreamId stream, InodeId ino, Seq seq) {
  return KeyOf(Table::kVersion, stream, ino.value).U64(~seq.value).Take();
}

Bytes VersionPrefix(StreamId stream, InodeId ino) {
  return KeyOf(Table::kVersion, stream, ino.value).Take();
}

void EncodeAttributes(Encoder& out, const Attributes& a) {
  out.U32(a.mode).U32(a.uid).U32(a.gid).U64(a.rdev);
  out.I64(a.atime).I64(a.mtime).I64(a.ctime).I64(a.btime);
}

Attributes DecodeAttributes(Decoder& in) {
  Attributes a;
  a.mode = in.U32();
  a.uid = in.U32();
  a.gid = in.U32();
  a.rdev = in.U64();
  a.atime = in.I64();
  a.mtime = in.I64();
  a.ctime = in.I64();
  a.btime = in.I64();
  return a;
}

Bytes InodeRow::Encode() const {
  Encoder row = NewRow();
  EncodeAttributes(row, attributes);
  row.U32(nlink).Content(content).U64(seq.value).U64(parent.value).String(name);
  return row.Take();
}

Result<InodeRow> InodeRow::Decode(ByteView row) {
  return DecodeRow<InodeRow>(row, "inodes", [](Decoder& in, InodeRow& out) {
    out.attributes = DecodeAttributes(in);
    out.nlink = in.U32();
    out.content = in.Content();
    out.seq = Seq(in.U64());
    out.parent = InodeId(in.U64());
    out.name = in.String();
    return true;
  });
}

// --- history of names ---

Bytes NameHistoryKey(StreamId stream, InodeId parent, std::string_view name, Seq seq) {
  return Encoder().Raw(NameHistoryPrefix(stream, parent, name)).U64(~seq.value).Take();
}

// A name contains no NUL, so the NUL ends it: "a" is no prefix of "ab" here.
Bytes NameHistoryPrefix(StreamId stream, InodeId parent, std::string_view name) {
  return KeyOf(Table::kNameHistory, stream, parent.value).Raw(name).U8(0).Take();
}

Bytes NameHistoryRow::Encode() const { return NewRow().U64(ino.value).Take(); }

Result<NameHistoryRow> NameHistoryRow::Decode(ByteView row) {
  return DecodeRow<NameHistoryRow>(row, "the history of names",
                                   [](Decoder& in, NameHistoryRow& out) {
                                     out.ino = InodeId(in.U64());
                                     return true;
                                   });
}

// --- extended attributes ---

Bytes XattrKey(StreamId stream, InodeId ino, std::string_view name) {
  return KeyOf(Table::kXattr, stream, ino.value).Raw(name).Take();
}

Bytes XattrPrefix(StreamId stream, InodeId ino) {
  return KeyOf(Table::kXattr, stream, ino.value).Take();
}

std::string XattrNameOfKey(ByteView key) {
  return std::string(KeyBehind(key, kTableSize + kStreamSize + kIdSize).rest());
}

Bytes EncodeContentRow(const ContentId& id) { return NewRow().Content(id).Take(); }

Result<ContentId> DecodeContentRow(ByteView row) {
  return DecodeRow<ContentId>(row, "extended attributes", [](Decoder& in, ContentId& out) {
    out = in.Content();
    return true;
  });
}

// --- orphans ---

Bytes OrphanKey(StreamId stream, InodeId ino) {
  return KeyOf(Table::kOrphan, stream, ino.value).Take();
}

Bytes OrphanPrefix() { return KeyOf(Table::kOrphan).Take(); }

StreamInode StreamInodeOfOrphanKey(ByteView key) {
  Decoder in = KeyBehind(key, kTableSize);
  const StreamId stream(in.U32());
  return {stream, InodeId(in.U64())};
}

// --- objects ---

Bytes LocationKey(const Digest& digest) { return KeyOf(Table::kLocation).Hash(digest).Take(); }

Bytes EncodeLocation(const journal::Location& where) {
  Encoder row = NewRow();
  row.U64(where.pack.Encode()).U64(where.offset).U32(where.length);
  return row.U8(static_cast<uint8_t>(where.type)).Take();
}

Result<journal::Location> DecodeLocation(ByteView row) {
  using journal::FrameType;
  return DecodeRow<journal::Location>(row, "locations", [](Decoder& in, journal::Location& out) {
    out.pack = journal::PackId::Decode(in.U64());
    out.offset = in.U64();
    out.length = in.U32();
    out.type = static_cast<FrameType>(in.U8());
    return out.type == FrameType::kBlob || out.type == FrameType::kExtend;
  });
}

Bytes BulkKey(uint64_t number) { return KeyOf(Table::kBulk).U64(number).Take(); }

Bytes CorruptKey(const Digest& digest) { return KeyOf(Table::kCorrupt).Hash(digest).Take(); }

Bytes CorruptPrefix() { return KeyOf(Table::kCorrupt).Take(); }

Digest DigestOfCorruptKey(ByteView key) { return KeyBehind(key, kTableSize).Hash(); }

// --- streams and the checkpoint ---

Bytes StreamKey(StreamId stream) { return KeyOf(Table::kStream, stream).Take(); }

Bytes StreamPrefix() { return KeyOf(Table::kStream).Take(); }

StreamId StreamOfKey(ByteView key) { return StreamId(KeyBehind(key, kTableSize).U32()); }

Bytes StreamRow::Encode() const {
  Encoder row = NewRow();
  row.String(agent).U8(removed ? 1 : 0).U64(seq.value).Hash(hash).I64(ts).U64(next_id);
  return row.Take();
}

Result<StreamRow> StreamRow::Decode(ByteView row) {
  return DecodeRow<StreamRow>(row, "streams", [](Decoder& in, StreamRow& out) {
    out.agent = in.String();
    const uint8_t flag = in.U8();
    out.removed = flag == 1;
    out.seq = Seq(in.U64());
    out.hash = in.Hash();
    out.ts = in.I64();
    out.next_id = in.U64();
    return flag <= 1;
  });
}

Bytes CheckpointKey() { return KeyOf(Table::kCheckpoint).Take(); }

Bytes CheckpointRow::Encode() const {
  return NewRow().U64(lsn.journal).U64(lsn.offset).U64(generation).Take();
}

Result<CheckpointRow> CheckpointRow::Decode(ByteView row) {
  return DecodeRow<CheckpointRow>(row, "checkpoints", [](Decoder& in, CheckpointRow& out) {
    out.lsn.journal = in.U64();
    out.lsn.offset = in.U64();
    out.generation = in.U64();
    return true;
  });
}

}  // namespace memoirfs::meta
