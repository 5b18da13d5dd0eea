#pragma once

// A record of a chain: a Runtime Record v0.1 (schema and hash rules: the project's notes on that
// format in store/FORMAT.md "Records"), with the change of the file system under "fs".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/attributes.h"
#include "store/base/clock.h"
#include "store/base/digest.h"
#include "store/base/types.h"

namespace memoirfs::chain {

enum class Op : uint8_t {
  kGenesis,
  kSession,
  kPut,
  kMkdir,
  kRmdir,
  kUnlink,
  kRename,
  kLink,
  kSymlink,
  kAttr,
  kXattr,
  kPull,
  kPush,
  kSnapshot,
  kRestore,
  kRecover,
  kQuarantine,
  kRepair,
  kRetain,
  kEvent,
  kCard,
};

std::string_view OpName(Op op);
std::optional<Op> OpOfName(std::string_view name);

// Who did it: read once a handle, at its first write.
struct Actor {
  uint32_t uid = 0;
  uint32_t gid = 0;
  int32_t pid = 0;   // 0: unknown (a store of a mapping, the daemon itself)
  std::string comm;  // valid UTF-8 (EscapeInvalidUtf8)
  friend bool operator==(const Actor&, const Actor&) = default;
};

// The change that a record describes: what replay applies. Which members each Op uses:
//   put      ino, content, attributes; parent, name, cookie when it creates the entry (a fifo or a
//            socket too: without content)
//   mkdir    ino, parent, name, cookie, attributes
//   symlink  ino, parent, name, cookie, attributes, content (the target's object)
//   link     ino, parent, name, cookie
//   unlink, rmdir   ino, parent, name; replaced_content of a regular file
//   rename   ino, parent, name, new_parent, new_name, cookie, replaced, replaced_content;
//            with exchange: replaced is the other inode, other_cookie its new entry's
//   attr     ino, attributes (all of them, as they are now)
//   xattr    ino, xattr_name, content of the value (absent: removed)
//   genesis  ino 1 and its attributes
//   session, event, recover   `detail` says it; no effect on the tree
//   quarantine, repair        the same; ino and path of a file that is concerned, where one is
// What a change does to ctime and to a directory's times follows from the record's own time.
struct Change {
  Op op{};
  InodeId ino;
  InodeId parent;
  std::string name;
  InodeId new_parent;
  std::string new_name;
  std::optional<InodeId> replaced;
  bool exchange = false;
  Cookie cookie;
  Cookie other_cookie;
  std::optional<Attributes> attributes;
  std::optional<ContentId> content;
  std::optional<ContentId> replaced_content;  // what the file contained before, for people
  std::string xattr_name;
  std::string path;    // for people: the path at that time, within memory/
  std::string detail;  // for people and events: JSON text of an object (canonical when it was
                       // read back), or empty
  Actor actor;
  friend bool operator==(const Change&, const Change&) = default;
};

// The path that a rename moved away from, within memory/: `detail` has it as "from" where the file
// changed its directory. Records of versions that did not write it give the name alone.
std::string RenameSource(const Change& change);
// The `detail` of a rename between directories.
std::string RenameDetail(const std::string& source);

// What is the same for all records of one stream in one run of the daemon.
struct RecordContext {
  StreamId stream;
  std::string store_id;    // UUID text of the store
  std::string agent;       // the agent's name
  std::string session_id;  // UUID text, of this opening of the store
};

struct Head {
  Seq seq;       // of the last record; 0 before the first
  Digest hash;   // of the last record; zeros before the first
  Nanos ts = 0;  // of the last record: the next is never earlier
  friend bool operator==(const Head&, const Head&) = default;
};

struct SealedRecord {
  Seq seq;
  Nanos ts = 0;
  Digest hash;
  std::string line;  // ASCII JSON, without '\n'
};

// The longest line of a record: what readers may rely on. Only `detail` can come near it.
inline constexpr size_t kMaxRecordBytes = 1U << 20;

// The subject of a stream's records, as a witness knows it.
std::string SubjectId(const RecordContext& context);

// Builds the record that follows `head`. `now` is raised to head.ts where it is earlier.
// kTooLarge when a number is not below 2^53 or the line is longer than kMaxRecordBytes;
// kInvalidArgument when a string is not UTF-8 or `detail` is not a JSON object of integers, strings
// and the like with at most 32 levels.
Result<SealedRecord> SealRecord(const RecordContext& context, const Head& head,
                                const Change& change, Nanos now);

struct ParsedRecord {
  StreamId stream;
  Seq seq;
  Nanos ts = 0;
  Digest prev_hash;
  Digest hash;  // as declared, and as recomputed: equal
  std::string ts_text;
  std::string agent;
  std::string subject;  // SubjectId of the store and agent that it was written for
  std::string session_id;
  Change change;
};

// Parses one line of ours and checks that its hash is what its text gives. kCorrupt with what was
// expected and found.
Result<ParsedRecord> ParseRecord(std::string_view line);

}  // namespace memoirfs::chain
