#pragma once

// Reads one object from the frames that hold it and verifies it: a blob frame, or a chain of
// extend frames down to one. Everything that does not verify is logged with its site and told to
// the listener here.

#include <functional>

#include "store/cas/object_store.h"

namespace memoirfs::cas {

// Thread-safe; takes no lock itself.
class ObjectReader {
 public:
  ObjectReader(journal::PackReader& packs, LocationTable& locations, CorruptionListener* listener)
      : packs_(packs), locations_(locations), listener_(listener) {}

  // Verified bytes that are at hand, or null: what an extend frame extends need not be read then.
  using Peek = std::function<Buffer(const Digest&)>;

  // kCorrupt when the object is missing, unreadable or does not match; other codes for failures
  // that say nothing about the object (the index, too many open files).
  Result<Buffer> Read(const Digest& digest, const Peek& peek);

 private:
  class Reading;

  journal::PackReader& packs_;
  LocationTable& locations_;
  CorruptionListener* const listener_;
};

}  // namespace memoirfs::cas
