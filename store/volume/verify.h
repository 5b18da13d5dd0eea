#pragma once

// Verification of a store, online (through a Volume that serves mounts) or offline.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/volume/volume.h"

namespace memoirfs::volume {

// Levels from quick to thorough; each includes those before it.
enum class VerifyLevel {
  kHeads,    // chain heads against the anchors outside the store
  kChains,   // every record of every chain
  kIndex,    // the index against a replay of the chains
  kObjects,  // every object that the chains refer to, and every pack
};

struct VerifyProgress {
  std::string what;
  uint64_t done = 0;
  uint64_t total = 0;
};

struct VerifyProblem {
  std::string what;   // "record", "object", "index", "pack", "anchor"
  std::string where;  // agent and path, or file and offset
  std::string expected;
  std::string found;
  std::string agent{};  // whose, where it is one agent's alone
};

struct VerifyReport {
  uint64_t streams = 0;
  uint64_t records = 0;
  uint64_t objects = 0;
  uint64_t bytes = 0;
  uint64_t packs = 0;
  std::vector<VerifyProblem> problems;
  bool nothing_to_verify() const { return records == 0 && problems.empty(); }
};

struct VerifyRequest {
  std::optional<std::string> agent;  // all without it
  VerifyLevel level = VerifyLevel::kObjects;
};

// Called several times a second; false ends the verification.
using ProgressListener = std::function<bool(const VerifyProgress&)>;
// kInterrupted when the listener ended it. Without a listener nothing does.
Result<VerifyReport> VerifyVolume(Volume& volume, const VerifyRequest& request,
                                  const ProgressListener& progress);

}  // namespace memoirfs::volume
