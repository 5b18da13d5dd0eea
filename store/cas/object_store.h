#pragma once

// Verified reads of content-addressed objects. An object is a digest's bytes: a flat file's
// content, one chunk, one tree node, a symlink's target, an xattr's value. No byte leaves here
// that was not hashed and compared first.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/base/bytes.h"
#include "store/base/digest.h"
#include "store/base/mutex.h"
#include "store/journal/pack.h"

namespace memoirfs::cas {

// The longest object: a chunk, and the largest flat file.
inline constexpr uint64_t kChunkSize = uint64_t{256} * 1024;

// Where objects lie; the index implements it (store/meta), joined by store/volume. Thread-safe.
class LocationTable {
 public:
  virtual ~LocationTable() = default;
  virtual Result<std::optional<journal::Location>> Find(const Digest& digest) = 0;
};

// Told once for each read that did not verify, after the log line; on the reading thread, with no
// lock of the object store held. Must be quick and must not read objects.
class CorruptionListener {
 public:
  virtual ~CorruptionListener() = default;
  virtual void OnCorrupt(const Digest& digest, const std::optional<journal::Location>& where,
                         const std::string& why) = 0;
};

struct ObjectStoreOptions {
  size_t cache_bytes = 64U << 20;
};

// Thread-safe. Concurrent reads of one object that is not cached read it once.
class ObjectStore {
 public:
  ObjectStore(journal::PackReader& packs, LocationTable& locations, CorruptionListener* listener,
              ObjectStoreOptions options = {});
  ~ObjectStore();

  // The object's bytes. kCorrupt when it is missing, unreadable or does not match its digest: the
  // message names digest, file and offset.
  Result<Buffer> Get(const Digest& digest);

  // As Get, but past the cache: what verify uses. Adds nothing to the cache.
  Result<Buffer> GetFromDisk(const Digest& digest);

  // Bytes that the caller has just hashed: served from memory from now on.
  void Remember(const Digest& digest, Buffer bytes);
  void Forget(const Digest& digest);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace memoirfs::cas
