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
  // a chain that is gone. Empty: all is as it was, or went on from there.
  Result<std::vector<volume::VerifyProblem>> Check(const volume::Volume& volume) const;

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
