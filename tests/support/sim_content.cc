#include "tests/support/sim_content.h"

#include <algorithm>
#include <array>
#include <set>

namespace memoirfs::testing {
namespace {

constexpr uint64_t kSector = 512;

void Put(uint64_t offset, ByteView data, Bytes& bytes) {
  if (data.empty()) return;
  if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size(), '\0');
  bytes.replace(offset, data.size(), data);
}

// Which sectors still follow the changes: one that missed a change misses all later ones, for it
// reached the disk before.
class Sectors {
 public:
  explicit Sectors(std::mt19937_64& random) : random_(random) {
    // All lost, an even chance, nearly all kept, all kept: extremes must be met often.
    constexpr std::array<uint64_t, 4> kPercents = {0, 50, 90, 100};
    percent_ = kPercents[random_() % kPercents.size()];
  }

  bool Follows(uint64_t sector) {
    if (left_behind_.count(sector) != 0) return false;
    if (random_() % 100 < percent_) return true;
    left_behind_.insert(sector);
    return false;
  }

 private:
  std::mt19937_64& random_;
  uint64_t percent_ = 0;
  std::set<uint64_t> left_behind_;
};

void PutTorn(uint64_t offset, ByteView data, Sectors& sectors, Bytes& bytes) {
  while (!data.empty()) {
    const uint64_t sector = offset / kSector;
    const uint64_t piece = std::min<uint64_t>(data.size(), (sector + 1) * kSector - offset);
    if (sectors.Follows(sector)) Put(offset, data.substr(0, piece), bytes);
    data.remove_prefix(piece);
    offset += piece;
  }
}

}  // namespace

void SimContent::Apply(const Change& change, Bytes& bytes) {
  if (change.truncate) {
    bytes.resize(change.offset, '\0');
  } else {
    Put(change.offset, change.data, bytes);
  }
}

void SimContent::Write(uint64_t offset, ByteView data) {
  changes_.push_back({false, offset, Bytes(data)});
  Apply(changes_.back(), current_);
}

void SimContent::Truncate(uint64_t size) {
  changes_.push_back({true, size, {}});
  Apply(changes_.back(), current_);
}

void SimContent::Overwrite(uint64_t offset, ByteView data) {
  Sync();
  Put(offset, data, durable_);
  Put(offset, data, current_);
}

void SimContent::Sync() {
  for (const Change& change : changes_) Apply(change, durable_);
  changes_.clear();
}

SimContent SimContent::AfterPowerCut(std::mt19937_64& random) const {
  const auto truncations = static_cast<uint64_t>(std::count_if(
      changes_.begin(), changes_.end(), [](const Change& change) { return change.truncate; }));
  uint64_t truncations_kept = random() % (truncations + 1);
  const bool size_first = random() % 4 == 0;
  Sectors sectors(random);
  SimContent left;
  left.durable_ = durable_;
  for (const Change& change : changes_) {
    if (!change.truncate) {
      PutTorn(change.offset, change.data, sectors, left.durable_);
      const uint64_t end = change.offset + change.data.size();
      if (size_first && left.durable_.size() < end) left.durable_.resize(end, '\0');
    } else if (truncations_kept-- > 0) {
      Apply(change, left.durable_);
    } else {
      break;
    }
  }
  left.current_ = left.durable_;
  return left;
}

}  // namespace memoirfs::testing
