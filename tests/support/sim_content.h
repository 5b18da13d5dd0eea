#pragma once

// The bytes of one file of SimIo: what is durable, what the page cache shows, and the changes that
// lead from the one to the other. Not thread-safe.

#include <cstdint>
#include <random>
#include <vector>

#include "store/base/bytes.h"

namespace memoirfs::testing {

class SimContent {
 public:
  const Bytes& bytes() const { return current_; }

  void Write(uint64_t offset, ByteView data);
  void Truncate(uint64_t size);
  // Damage, not a change: hits what is durable as well. The bytes must be within the file.
  void Overwrite(uint64_t offset, ByteView data);

  void Sync();
  // The outcome of a failed sync: the changes will never be written.
  void ForgetUnsynced() { changes_.clear(); }

  // What a power cut leaves, by chance.
  SimContent AfterPowerCut(std::mt19937_64& random) const;

 private:
  struct Change {
    bool truncate = false;
    uint64_t offset = 0;  // of the data; the new size of a truncation
    Bytes data;
  };

  static void Apply(const Change& change, Bytes& bytes);

  Bytes durable_;
  Bytes current_;
  std::vector<Change> changes_;
};

}  // namespace memoirfs::testing
