#pragma once

// An object store over a journal on a simulated disk, for tests: objects are written as frames and
// are read back from there.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/cas/object_store.h"
#include "store/journal/journal.h"
#include "tests/support/sim_io.h"

namespace memoirfs::testing {

// Where objects lie, in memory; counts look-ups and can hold them up. Thread-safe.
class FakeLocations final : public cas::LocationTable {
 public:
  Result<std::optional<journal::Location>> Find(const Digest& digest) override;

  std::optional<journal::Location> Peek(const Digest& digest) const;
  void Set(const Digest& digest, const journal::Location& where);
  void Remove(const Digest& digest);
  void FailWith(Status failure);
  size_t finds() const;
  // Called by each Find, without a lock.
  std::function<void()> on_find;

 private:
  mutable std::mutex mutex_;
  std::map<Digest, journal::Location> places_;
  Status failure_;
  size_t finds_ = 0;
};

// Keeps what it is told. Thread-safe.
class RecordedCorruptions final : public cas::CorruptionListener {
 public:
  struct Report {
    Digest digest;
    std::optional<journal::Location> where;
    std::string why;
  };
  void OnCorrupt(const Digest& digest, const std::optional<journal::Location>& where,
                 const std::string& why) override;
  std::vector<Report> reports() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Report> reports_;
};

class StoredObjects {
 public:
  explicit StoredObjects(size_t cache_bytes = 1U << 20);

  // Write frames; the digest is that of the bytes, or the one given (to make damage).
  Digest AddBlob(ByteView bytes);
  void AddBlobAs(const Digest& digest, ByteView bytes);
  void AddExtend(const Digest& whole, const Digest& base, ByteView suffix);
  // Takes objects that a tree or a resizing emits, as blobs.
  std::function<Status(const Digest&, Buffer)> Sink();
  // Flips a bit of the object's frame, `at` bytes into its payload.
  void DamagePayload(const Digest& digest, uint64_t at);

  cas::ObjectStore& objects() { return *objects_; }

  SimIo io;
  FakeLocations locations;
  RecordedCorruptions corruptions;

 private:
  void Append(const Digest& digest, const journal::NewFrame& frame);

  std::unique_ptr<journal::Journal> journal_;
  std::unique_ptr<journal::PackReader> packs_;
  std::unique_ptr<cas::ObjectStore> objects_;
};

}  // namespace memoirfs::testing
