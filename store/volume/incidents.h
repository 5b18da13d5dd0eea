#pragma once

// What a store finds wrong with itself, for the chains of the agents that it concerns: `recover`,
// `quarantine` and `repair` records. Their details: store/FORMAT.md "Incidents".

#include <optional>
#include <string>
#include <vector>

#include "store/base/digest.h"
#include "store/chain/record.h"
#include "store/journal/frame.h"

namespace memoirfs::volume {

struct Finding {
  std::string what;   // "object", "torn-tail", "damage", "index" and so on
  std::string where;  // a file of the store, and the offset in it
  std::string expected;
  std::string found;  // for a repair: what was done
};

// The detail of a record: bounded, whatever the findings say.
std::string DetailOf(const std::vector<Finding>& findings);

// An object that did not verify, or that was stored anew after that.
struct ObjectIncident {
  chain::Op op{};  // kQuarantine or kRepair
  Digest digest;
  std::optional<journal::Location> where;
  std::string what_happened;
};

Finding FindingOf(const ObjectIncident& incident);

}  // namespace memoirfs::volume
