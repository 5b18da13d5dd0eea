#pragma once

// The index: LevelDB under an overlay of what is not durable yet. Derived: it can be deleted and
// rebuilt from chains and packs, and never leads them. A batch reaches LevelDB only when the
// journal position it came from is durable, in the order of appends, each batch atomically; until
// then the overlay serves it.
//
// Thread-safe. Readers see every applied batch whole or not at all per key look-up; a Scan may see
// a batch that is applied while it runs.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/file_io.h"
#include "store/base/mutex.h"
#include "store/base/status.h"
#include "store/journal/frame.h"

namespace memoirfs::meta {

// Puts and deletes, applied in order.
class Batch {
 public:
  void Put(Bytes key, Bytes value) { ops_.emplace_back(std::move(key), std::move(value)); }
  void Delete(Bytes key) { ops_.emplace_back(std::move(key), std::nullopt); }
  bool empty() const { return ops_.empty(); }
  const std::vector<std::pair<Bytes, std::optional<Bytes>>>& ops() const { return ops_; }

 private:
  std::vector<std::pair<Bytes, std::optional<Bytes>>> ops_;
};

class Index {
 public:
  // Opens or creates the database in directory `path` of `io`; all its I/O goes through `io`.
  // kCorrupt when it is damaged or LevelDB can't open it; where the system lacked something that a
  // new index would lack as well (kNoSpace, kTooManyFiles and the like), that.
  static Result<std::unique_ptr<Index>> Open(FileIo& io, const std::string& path);
  ~Index();

  Result<std::optional<Bytes>> Get(ByteView key) const;

  // Visits the keys that begin with `prefix` and are not below `start`, in order, until the
  // visitor returns false. It may call Get, not Apply.
  using Visitor = std::function<bool(ByteView key, ByteView value)>;
  Status Scan(ByteView prefix, ByteView start, const Visitor& visit) const;

  // Visible at once. `lsn` is where its frames end in the journal; calls come in rising order. A
  // batch that needs nothing of the journal may name any earlier place.
  void Apply(Batch batch, journal::Lsn lsn);

  // Visible at once, never written: rows of a file that was created and not yet committed. A later
  // Apply of the same key replaces it.
  void ApplyPending(const Batch& batch);
  // Takes pending rows back; keys that Apply replaced meanwhile stay.
  void DropPending(const std::vector<Bytes>& keys);

  // Writes every batch with lsn <= durable to LevelDB, unsynced. After a failure the overlay keeps
  // what LevelDB did not get. A failure for want of space (kNoSpace), descriptors or memory passes:
  // a later call opens LevelDB anew once there is room. Any other, and a sync that failed whatever
  // the reason, is final: nothing more is written until the store is opened anew.
  Status Flush(journal::Lsn durable);
  // Flush, then makes LevelDB durable together with one more row.
  Status FlushAndSync(journal::Lsn durable, Bytes key, Bytes value);

  // A read found bytes in LevelDB's files that are not what was written: rebuild it.
  bool damaged() const;

  // Whether a batch waits for Flush, or for the journal.
  bool has_unwritten() const;

  // Bytes that the overlay holds: for back-pressure and status.
  size_t overlay_bytes() const;

 private:
  class Impl;
  explicit Index(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Removes the files of a LevelDB database in `path` and the directory; for a rebuild.
Status DestroyIndex(FileIo& io, const std::string& path);

}  // namespace memoirfs::meta
