#pragma once

// The machinery behind SimIo: nodes, tables of names, faults. Shared by a SimIo and its files.

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "store/base/mutex.h"
#include "store/base/status.h"
#include "tests/support/sim_content.h"
#include "tests/support/sim_io.h"

namespace memoirfs::testing {

struct SimNode;
using SimNodePtr = std::shared_ptr<SimNode>;
using SimNames = std::map<std::string, SimNodePtr>;

struct SimNode {
  uint64_t id = 0;  // counts from the first node made: the same in every run
  bool is_directory = false;
  SimContent content;
  SimNames names;          // of a directory, as calls see it
  SimNames durable_names;  // as a power cut would leave it
};

class SimDisk {
 public:
  SimDisk();

  mutable Mutex mutex;

  // Counts a call and says whether it may go on.
  Status Enter(SimCall kind, const std::string& path) REQUIRES(mutex);
  // As Enter, for a call with bytes: where it fails, `size` becomes how many to write before.
  Status EnterSized(SimCall kind, const std::string& path, uint64_t& size) REQUIRES(mutex);

  SimNodePtr NewNode(bool is_directory) REQUIRES(mutex);

  // The node at `path`, or null. "." is the root.
  SimNodePtr Find(const std::string& path) const REQUIRES(mutex);
  // The directory that holds the last part of `path`, or null.
  SimNodePtr DirectoryOf(const std::string& path) const REQUIRES(mutex);

  // Changes names; `node` null removes. Names that change together are one step for a power cut.
  struct NameChange {
    SimNodePtr directory;
    std::string name;
    SimNodePtr node;
  };
  void ChangeNames(std::vector<NameChange> step) REQUIRES(mutex);
  void SyncNames(const SimNodePtr& directory) REQUIRES(mutex);

  // Whether files may grow by so much.
  bool HasRoomFor(uint64_t growth) const REQUIRES(mutex);
  SpaceFacts Space() const REQUIRES(mutex);

  std::shared_ptr<SimDisk> AfterKill() const REQUIRES(mutex);
  std::shared_ptr<SimDisk> AfterPowerCut(uint64_t seed) const REQUIRES(mutex);

  struct Fault {
    SimCall kind = SimCall::kAny;
    uint64_t at = 0;  // the count of `kind` that it hits
    int err = 0;
    enum class Effect { kFailOnce, kFailForever, kShortWrite, kCrash } effect = Effect::kFailOnce;
  };
  void Arm(Fault fault, uint64_t nth) REQUIRES(mutex);

  std::vector<Fault> faults GUARDED_BY(mutex);
  std::array<uint64_t, kSimCalls> counts GUARDED_BY(mutex) = {};
  bool crashed GUARDED_BY(mutex) = false;
  std::function<void()> before_sync GUARDED_BY(mutex);
  uint64_t capacity GUARDED_BY(mutex) = std::numeric_limits<uint64_t>::max();

 private:
  using Step = std::vector<NameChange>;
  using Copies = std::map<const SimNode*, SimNodePtr>;

  void Count(SimCall kind) REQUIRES(mutex);
  const Fault* Hit(SimCall kind) const REQUIRES(mutex);
  uint64_t UsedBytes() const REQUIRES(mutex);
  static SimNodePtr Copy(const SimNodePtr& node, Copies& copies);
  void CutPower(uint64_t seed, const Copies& nodes) REQUIRES(mutex);
  std::shared_ptr<SimDisk> CopyWith(Copies& copies) const REQUIRES(mutex);

  uint64_t last_id_ GUARDED_BY(mutex) = 0;
  SimNodePtr root_ GUARDED_BY(mutex);
  std::vector<Step> unsynced_ GUARDED_BY(mutex);  // changes of names, oldest first
};

}  // namespace memoirfs::testing
