#pragma once

// Verification of a chain as any outsider would do it: from the lines alone.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/base/digest.h"
#include "store/base/types.h"
#include "store/chain/record.h"

namespace memoirfs::chain {

// Checks any Runtime Record chain, also one that is not ours: JSON, schema, link to the recomputed
// previous hash, hash. From the first record that breaks the chain on, links and hashes are not
// judged, because nothing that follows can be shown intact or altered. Not thread-safe.
class ChainVerifier {
 public:
  // One record; blank lines are skipped. Problems are kept, up to 100.
  void Add(std::string_view line);

  uint64_t count() const { return count_; }
  // The recomputed hash of the last record; zeros before the first.
  const Digest& head() const { return previous_; }
  const std::vector<std::string>& problems() const { return problems_; }
  bool intact() const { return problems_.empty(); }
  // Links and hashes hold, whatever the schema says of the records.
  bool chain_intact() const { return broken_at_ == 0; }
  // Records that name a parent, and those whose parent is not earlier in this chain: it may be in
  // another one, so that is no problem.
  uint64_t parent_links() const { return parent_links_; }
  uint64_t unresolved_parents() const { return unresolved_parents_; }

 private:
  void Problem(const std::string& text);
  void ProblemOfRecord(std::string_view text);
  // The chain breaks at the last record.
  void Break();
  void CheckLinks(const std::string& declared_prev, const std::string& declared_hash,
                  const Digest& recomputed);
  void NoteIds(const std::string& record_id, const std::string& parent_id);

  uint64_t count_ = 0;
  Digest previous_;
  uint64_t broken_at_ = 0;  // the record that broke the chain
  std::vector<std::string> problems_;
  // Hashes of the ids seen: half the memory, for a statement that is only a note.
  std::unordered_set<size_t> seen_ids_;
  uint64_t parent_links_ = 0;
  uint64_t unresolved_parents_ = 0;
};

// A witness's statement about a chain: it had `count` records and ended in `head`.
struct Checkpoint {
  std::string subject;  // empty: none
  Digest chain_root;    // the hash of record 1; zeros: none
  uint64_t count = 0;
  Digest head;
  std::string ts;

  // One line of JSON, as in a witness file (FORMAT.md "Witness"), without '\n'.
  std::string ToLine() const;
  static Result<Checkpoint> FromLine(std::string_view line);
  // Of everything but `ts`: what a time stamp is asked for.
  Result<Digest> StateDigest() const;
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

}  // namespace memoirfs::chain
