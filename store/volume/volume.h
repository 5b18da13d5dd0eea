#pragma once

// A store of any number of agents: the facade that the file system, the commands and later the
// sync use. It joins journal, objects, chains and index: each change is checked against the index,
// becomes one record, is appended in one write with the bytes it needs, and is visible when the
// call returns. It is durable after Sync (or within a second, by the committer).
//
// Thread-safe. Changes of one stream exclude each other; changes of different streams wait for each
// other only while one is written to the journal.
//
// What waits for the disk: opening and closing, AddAgent, RemoveAgent, Sync, Checkpoint,
// RunCommitterOnce, ForEachRecord, and a ChunkSession, whose Store syncs every 32 MiB. Other
// changes write to the page cache; they wait for the disk only where a journal file is full and the
// next one, which is made ahead, is not there yet, and where more changes than max_overlay_bytes
// wait for the index.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/base/attributes.h"
#include "store/base/clock.h"
#include "store/base/file_io.h"
#include "store/base/types.h"
#include "store/cas/object_store.h"
#include "store/chain/record.h"
#include "store/chain/segment.h"
#include "store/journal/journal.h"

namespace memoirfs::volume {

struct VolumeOptions {
  journal::JournalOptions journal;
  chain::SegmentOptions segments;
  cas::ObjectStoreOptions objects;
  bool background = true;  // the committer's threads; off in tests that step it themselves
  uint64_t commit_interval_ms = 1000;
  // Changes that wait for the index in memory. Who would add to more than this waits for the disk.
  size_t max_overlay_bytes = 128U << 20;
  bool read_only = false;  // every change answers kReadOnly (recovery still runs)
};

struct AgentFacts {
  std::string name;
  StreamId stream;
  bool removed = false;
  chain::Head head;
  std::string chain_directory;     // relative to the store
  std::string read_only_reason{};  // why only this agent's memory takes no change; else empty
};

struct Inode {
  InodeId id;
  Attributes attributes;
  uint32_t nlink = 0;
  ContentId content;
  Seq seq;         // of the record that last changed it; 0: created, not committed yet
  InodeId parent;  // where it was named last
};

struct Entry {
  std::string name;
  InodeId ino;
  Cookie cookie;
  uint32_t type = 0;  // S_IFMT bits
};

// A new object that a commit brings along. `base` and `suffix_offset` say that the bytes are those
// of an object already stored plus a suffix, so that only the suffix need be written.
struct NewObject {
  Digest digest;
  Buffer bytes;
  std::optional<Digest> base;
  uint64_t suffix_offset = 0;
};

enum class RenameMode { kReplace, kNoReplace, kExchange };

struct NewNode {
  uint32_t mode = 0;  // type and permissions
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t rdev = 0;
};

struct VolumeFacts {
  std::string store_id;
  std::string session_id;
  bool read_only = false;
  std::string read_only_reason;  // why none of the store takes a change
  journal::Lsn end;
  journal::Lsn durable;
  uint64_t barriers = 0;  // fdatasync calls on the journal
  size_t overlay_bytes = 0;
  // Why a purge that was decided is not carried out yet: the next opening tries again. Empty: none.
  std::string purge_pending;
  uint64_t pending_creates = 0;
  std::vector<AgentFacts> agents;
  struct Corrupt {
    Digest digest;
    std::string why;
  };
  std::vector<Corrupt> corrupt;
};

// Creates a store in the (empty or missing) directory `path`: 0700, FORMAT, folders, the first
// journal. kExists when it holds a store already; kNotEmpty when it holds anything else.
Status InitStore(const std::string& path, const VolumeOptions& options = {});
Status InitStore(FileIo& io, const VolumeOptions& options = {});

// What an extended attribute may be called and hold: kRange above 255 bytes, kIllegalName, and
// kTooLarge above 64 KiB.
Status CheckXattr(const std::string& name, const std::optional<Bytes>& value);

class Volume {
 public:
  // Opens, recovering what a crash left. kUnknownFormat, kCorrupt, kNotFound with what to do.
  // The caller holds the store's lock (StoreLock). `io` and `clock` outlive the volume.
  static Result<std::unique_ptr<Volume>> Open(FileIo& io, Clock& clock, VolumeOptions options = {});
  // Checkpoints and marks the journal as stopped cleanly, unless it failed before.
  ~Volume();

  // --- agents ---------------------------------------------------------------------------------
  // A new stream with its genesis record, durable on return. An agent that was removed comes back
  // with its history. kExists, kInvalidArgument.
  Result<AgentFacts> AddAgent(const std::string& name, uint32_t uid, uint32_t gid);
  // The name is no longer mounted; chain and history stay. kNotFound.
  //
  // With `purge` both go, and the bytes that no other agent refers to. On return this is decided,
  // durably; the next opening carries it out, and should follow at once. Until then nobody finds
  // the agent, and all changes answer kReadOnly. Nobody may have a chunk session.
  Status RemoveAgent(const std::string& name, bool purge);
  std::vector<AgentFacts> ListAgents() const;                   // removed ones too; by name
  Result<AgentFacts> FindAgent(const std::string& name) const;  // kNotFound for removed ones too

  // --- reading the tree -----------------------------------------------------------------------
  Result<Inode> GetInode(StreamId stream, InodeId ino) const;  // kNotFound; orphans are found
  Result<Entry> Lookup(StreamId stream, InodeId parent, std::string_view name) const;
  // Up to `limit` entries behind `after`, in the order of cookies.
  Result<std::vector<Entry>> List(StreamId stream, InodeId dir, Cookie after, size_t limit) const;
  Result<std::string> ReadLink(StreamId stream, InodeId ino) const;
  Result<Bytes> GetXattr(StreamId stream, InodeId ino, const std::string& name) const;
  Result<std::vector<std::string>> ListXattrs(StreamId stream, InodeId ino) const;

  // --- changes: one record each ---------------------------------------------------------------
  // Where an inode must be committed and is not: kUncommitted.
  // A regular file that is not committed yet: visible, kept over a crash of the daemon by an
  // intent, recorded by its first CommitContent. Fifos and sockets are recorded at once.
  Result<Inode> Create(StreamId stream, InodeId parent, const std::string& name,
                       const NewNode& node, const chain::Actor& actor);
  Result<Inode> MakeDirectory(StreamId stream, InodeId parent, const std::string& name,
                              const NewNode& node, const chain::Actor& actor);
  Result<Inode> MakeSymlink(StreamId stream, InodeId parent, const std::string& name,
                            const NewNode& node, const std::string& target,
                            const chain::Actor& actor);
  // kPermission for a directory. The inode must be committed.
  Result<Inode> MakeLink(StreamId stream, InodeId ino, InodeId new_parent,
                         const std::string& new_name, const chain::Actor& actor);
  // Returns the inode as it is afterwards (nlink 0: only open handles know it).
  Result<Inode> Unlink(StreamId stream, InodeId parent, const std::string& name,
                       const chain::Actor& actor);
  Status RemoveDirectory(StreamId stream, InodeId parent, const std::string& name,
                         const chain::Actor& actor);
  // The moved inode (and the other one of an exchange) must be committed. Returns the inode that
  // was replaced, as it is afterwards, when one was.
  Result<std::optional<Inode>> Rename(StreamId stream, InodeId parent, const std::string& name,
                                      InodeId new_parent, const std::string& new_name,
                                      RenameMode mode, const chain::Actor& actor);
  // Sets all attributes but type and btime. The inode must be committed. Does nothing for an inode
  // without a name but say so, as CommitContent.
  Result<Inode> SetAttributes(StreamId stream, InodeId ino, const Attributes& attributes,
                              const chain::Actor& actor);
  // nullopt removes. kNoAttribute, and what CheckXattr says; kNotFound for an inode without a name
  // too. The inode must be committed.
  Status SetXattr(StreamId stream, InodeId ino, const std::string& name,
                  const std::optional<Bytes>& value, const chain::Actor& actor);

  // New content and attributes of a regular file: one `put`. Objects that the store has already
  // are not written again. Does nothing for an inode without a name (nlink 0) but say so: the
  // result's nlink is 0. The caller's content id is trusted to name what the objects hold.
  Result<Inode> CommitContent(StreamId stream, InodeId ino, const ContentId& content,
                              std::span<const NewObject> objects, const Attributes& attributes,
                              const chain::Actor& actor);
  // A truncation through a handle, before its commit: survives a crash of the daemon as content of
  // that size. An unsynced intent.
  Status NoteTruncation(StreamId stream, InodeId ino, uint64_t size);

  // --- content --------------------------------------------------------------------------------
  cas::ObjectStore& objects();
  // Parts of a file too big for one commit, written as they come. Chunks are readable through
  // objects() at once, and become durable when the session is finished, which a commit that
  // refers to them must be preceded by. One session serves one file; not thread-safe.
  class ChunkSession {
   public:
    virtual ~ChunkSession() = default;  // unfinished: the chunks are dropped
    virtual Status Store(const Digest& digest, const Buffer& bytes) = 0;
    virtual Status Finish() = 0;
  };
  Result<std::unique_ptr<ChunkSession>> StartChunkSession();
  // Commits up to this many bytes of objects go into the journal; bigger ones need a session.
  static constexpr uint64_t kMaxCommitBytes = 4ULL << 20;

  // --- durability -----------------------------------------------------------------------------
  Status Sync();        // everything appended before the call is durable
  Status Checkpoint();  // Sync, segments and index written and durable
  // What the committer does once a second: barrier, segments, index, preparing and sealing files.
  Status RunCommitterOnce();

  // --- history --------------------------------------------------------------------------------
  // Records of a stream in order from `from`. Everything appended before the call is made durable
  // first and is among them.
  using RecordVisitor = std::function<Status(const chain::ParsedRecord&, std::string_view line)>;
  Status ForEachRecord(StreamId stream, Seq from, const RecordVisitor& visit) const;
  // The inode at `path` (within memory/) as record `seq` left it; the newest without `seq`.
  Result<Inode> FindVersion(StreamId stream, std::string_view path, std::optional<Seq> seq) const;

  Result<SpaceFacts> Space() const;
  VolumeFacts Facts() const;
  FileIo& io();
  Clock& clock();

  // For this folder's own files.
  class Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Volume(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace memoirfs::volume
