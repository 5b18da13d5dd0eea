#pragma once

// Verification of a chain as any outsider would do it: from the lines alone.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/digest.h"
#include "store/base/types.h"
#include "store/chain/record.h"

namespace memoirfs::chain {

// Checks any Runtime Record chain, also one that is not ours: JSON, schema, link to the recomputed
// previous hash, hash. Not thread-safe.
class ChainVerifier {
 public:
  // One record; blank lines are skipped. Problems are kept, up to 100.
  void Add(std::string_view line);

  uint64_t count() const { return count_; }
  // The recomputed hash of the last record; zeros before the first.
  const Digest& head() const { return previous_; }
  const std::vector<std::string>& problems() const { return problems_; }
  bool intact() const { return problems_.empty(); }

 private:
  void Problem(const std::string& text);

  uint64_t count_ = 0;
  Digest previous_;
  bool broken_ = false;  // the chain broke: later links cannot be judged
  std::vector<std::string> problems_;
};

// A witness's statement about a chain: it had `count` records and ended in `head`.
struct Checkpoint {
  std::string subject;  // empty: none
  Digest chain_root;
  uint64_t count = 0;
  Digest head;
  std::string ts;

  // One line of JSON, as in a witness file (FORMAT.md "Witness").
  std::string ToLine() const;
  static Result<Checkpoint> FromLine(std::string_view line);
};

}  // namespace memoirfs::chain
