#pragma once

// The heads of a store's chains, kept outside the store (heads.json in its state directory): who
// puts an older state of the store back, or rewrites a chain, is found out at the next open.

#include <map>
#include <string>
#include <vector>

#include "store/volume/verify.h"
#include "store/volume/volume.h"

namespace memoirfs::daemon {

struct Anchor {
  std::string agent;
  Seq seq;
  Digest hash;
  bool purging = false;  // a purge was asked for: the chain may be gone
  friend bool operator==(const Anchor&, const Anchor&) = default;
};
using AnchorSet = std::map<StreamId, Anchor>;

// Not thread-safe.
class Anchors {
 public:
  // Reads heads.json of `state_directory`; a missing file is no anchors. kCorrupt when it does not
  // parse: the message says what to do.
  static Result<Anchors> Load(const std::string& state_directory);

  // What does not agree with the anchors: a head behind, a different record at an anchor's place,
  // a chain that is gone though no purge was noted. Empty: all is as it was, or went on from there.
  Result<std::vector<volume::VerifyProblem>> Check(const volume::Volume& volume) const;
  // The same of a store that is not opened: before recovery, which writes, may change what is
  // there. Changes nothing.
  Result<std::vector<volume::VerifyProblem>> CheckOnDisk(FileIo& store) const;
  // Adds what a check found to rollback.ndjson beside the heads, whatever becomes of the store; not
  // what stands there last.
  Status KeepFindings(const std::vector<volume::VerifyProblem>& problems, Nanos when) const;

  // Says, durably, that a chain is about to be purged; before the store is told. Its anchor goes on
  // to hold for as long as the chain is there: a purge that was asked for and not begun hides
  // nothing. The next Update forgets it, or this note where the chain is still there.
  Status NotePurge(StreamId stream);

  // Syncs the volume and notes its heads when they differ from what is noted. Chains that were
  // purged are forgotten.
  Status Update(volume::Volume& volume);

  bool empty() const { return known_.empty(); }
  const AnchorSet& known() const { return known_; }
  std::string path() const;

 private:
  explicit Anchors(std::string directory) : directory_(std::move(directory)) {}
  Status Save() const;

  std::string directory_;
  AnchorSet known_;
};

// The text of heads.json and back.
std::string EncodeAnchors(const AnchorSet& anchors);
Result<AnchorSet> DecodeAnchors(std::string_view text);

}  // namespace memoirfs::daemon
