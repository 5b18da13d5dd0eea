#include "tests/support/sim_disk.h"

#include <algorithm>
#include <set>
#include <utility>

namespace memoirfs::testing {
namespace {

bool IsChange(SimCall kind) { return kind > SimCall::kOpen; }

void Apply(const SimDisk::NameChange& change, SimNames SimNode::*table) {
  SimNames& names = (*change.directory).*table;
  if (change.node == nullptr) {
    names.erase(change.name);
  } else {
    names[change.name] = change.node;
  }
}

void CollectFiles(const SimNode& directory, std::set<const SimNode*>& files) {
  for (const auto& [name, node] : directory.names) {
    if (node->is_directory) {
      CollectFiles(*node, files);
    } else {
      files.insert(node.get());
    }
  }
}

}  // namespace

SimDisk::SimDisk() : root_(std::make_shared<SimNode>()) { root_->is_directory = true; }

SimNodePtr SimDisk::NewNode(bool is_directory) {
  auto node = std::make_shared<SimNode>();
  node->id = ++last_id_;
  node->is_directory = is_directory;
  return node;
}

// --- counting and failing

void SimDisk::Count(SimCall kind) {
  ++counts[static_cast<size_t>(SimCall::kAny)];
  ++counts[static_cast<size_t>(kind)];
  if (IsChange(kind)) ++counts[static_cast<size_t>(SimCall::kChange)];
}

void SimDisk::Arm(Fault fault, uint64_t nth) {
  fault.at = counts[static_cast<size_t>(fault.kind)] + nth;
  faults.push_back(fault);
}

const SimDisk::Fault* SimDisk::Hit(SimCall kind) const {
  for (const Fault& fault : faults) {
    const bool concerned = fault.kind == SimCall::kAny || fault.kind == kind ||
                           (fault.kind == SimCall::kChange && IsChange(kind));
    const uint64_t count = counts[static_cast<size_t>(fault.kind)];
    const bool lasting = fault.effect == Fault::Effect::kFailForever;
    if (concerned && (count == fault.at || (lasting && count > fault.at))) return &fault;
  }
  return nullptr;
}

Status SimDisk::Enter(SimCall kind, const std::string& path) {
  uint64_t none = 0;
  return EnterSized(kind, path, none);
}

Status SimDisk::EnterSized(SimCall kind, const std::string& path, uint64_t& size) {
  Count(kind);
  const Fault* fault = Hit(kind);
  if (fault != nullptr && fault->effect == Fault::Effect::kCrash) crashed = true;
  if (crashed) {
    size = 0;
    return Status(Code::kIo, "the simulated machine has stopped: " + path);
  }
  if (fault == nullptr) return {};
  size = fault->effect == Fault::Effect::kShortWrite ? size / 2 : 0;
  return Status::FromErrno(fault->err, "simulated failure at " + path);
}

// --- names

SimNodePtr SimDisk::Find(const std::string& path) const {
  SimNodePtr node = root_;
  size_t start = 0;
  while (node != nullptr && start <= path.size()) {
    const size_t slash = std::min(path.find('/', start), path.size());
    const std::string part = path.substr(start, slash - start);
    start = slash + 1;
    if (part.empty() || part == ".") continue;
    const auto found = node->names.find(part);
    node = found == node->names.end() ? nullptr : found->second;
  }
  return node;
}

SimNodePtr SimDisk::DirectoryOf(const std::string& path) const {
  SimNodePtr directory = Find(ParentOf(path));
  return directory != nullptr && directory->is_directory ? directory : nullptr;
}

void SimDisk::ChangeNames(Step step) {
  for (const NameChange& change : step) Apply(change, &SimNode::names);
  unsynced_.push_back(std::move(step));
}

void SimDisk::SyncNames(const SimNodePtr& directory) {
  for (Step& step : unsynced_) {
    for (const NameChange& change : step) {
      if (change.directory == directory) Apply(change, &SimNode::durable_names);
    }
    step.erase(std::remove_if(step.begin(), step.end(),
                              [&](const NameChange& c) { return c.directory == directory; }),
               step.end());
  }
  unsynced_.erase(std::remove_if(unsynced_.begin(), unsynced_.end(),
                                 [](const Step& step) { return step.empty(); }),
                  unsynced_.end());
}

// --- room

uint64_t SimDisk::UsedBytes() const {
  std::set<const SimNode*> files;
  CollectFiles(*root_, files);
  uint64_t used = 0;
  for (const SimNode* file : files) used += file->content.bytes().size();
  return used;
}

bool SimDisk::HasRoomFor(uint64_t growth) const {
  if (growth == 0 || capacity == std::numeric_limits<uint64_t>::max()) return true;
  const uint64_t used = UsedBytes();
  return used <= capacity && growth <= capacity - used;
}

SpaceFacts SimDisk::Space() const {
  constexpr uint64_t kBlock = 512;
  const uint64_t used = std::min(UsedBytes(), capacity);
  return {kBlock, capacity / kBlock, (capacity - used) / kBlock, 0, 0};  // inodes are not counted
}

// --- what is left

SimNodePtr SimDisk::Copy(const SimNodePtr& node, Copies& copies) {
  if (node == nullptr) return nullptr;
  SimNodePtr& copy = copies[node.get()];
  if (copy != nullptr) return copy;
  copy = std::make_shared<SimNode>();
  copy->id = node->id;
  copy->is_directory = node->is_directory;
  copy->content = node->content;
  for (const auto& [name, child] : node->names) copy->names[name] = Copy(child, copies);
  for (const auto& [name, child] : node->durable_names) {
    copy->durable_names[name] = Copy(child, copies);
  }
  return copy;
}

std::shared_ptr<SimDisk> SimDisk::CopyWith(Copies& copies) const {
  auto disk = std::make_shared<SimDisk>();
  // The new disk is nobody else's yet; its lock would be the second one of its rank.
  [&]() NO_THREAD_SAFETY_ANALYSIS {
    disk->last_id_ = last_id_;
    disk->root_ = Copy(root_, copies);
    for (const Step& step : unsynced_) {
      Step& copied = disk->unsynced_.emplace_back();
      for (const NameChange& change : step) {
        copied.push_back({Copy(change.directory, copies), change.name, Copy(change.node, copies)});
      }
    }
  }();
  return disk;
}

std::shared_ptr<SimDisk> SimDisk::AfterKill() const {
  Copies copies;
  return CopyWith(copies);
}

std::shared_ptr<SimDisk> SimDisk::AfterPowerCut(uint64_t seed) const {
  Copies copies;
  std::shared_ptr<SimDisk> disk = CopyWith(copies);
  [&]() NO_THREAD_SAFETY_ANALYSIS { disk->CutPower(seed, copies); }();
  return disk;
}

void SimDisk::CutPower(uint64_t seed, const Copies& nodes) {
  std::mt19937_64 random(seed);
  const size_t kept = random() % (unsynced_.size() + 1);
  for (size_t i = 0; i < kept; ++i) {
    for (const NameChange& change : unsynced_[i]) Apply(change, &SimNode::durable_names);
  }
  unsynced_.clear();
  for (const auto& [original, node] : nodes) {
    // By its id: the order of the map is the order of addresses, which differs from run to run.
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
    std::mt19937_64 chance(seed + node->id * kSpread);
    node->names = node->durable_names;
    node->content = node->content.AfterPowerCut(chance);
  }
}

}  // namespace memoirfs::testing
