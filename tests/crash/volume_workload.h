#pragma once

// A life of a store for crash tests: a fixed list of varied steps, each at most one change, and
// what the tree looks like after each of them.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/volume/volume.h"
#include "tests/support/sim_io.h"

namespace memoirfs::testing {

// What the stores log goes into a file that is gone with the program.
void LogNowhere();

// "<agent>/<path>" -> all that must survive of the inode there.
using Tree = std::map<std::string, std::string>;

// The first path in which two trees differ, and how; empty when they are equal.
std::string FirstDifference(const Tree& expected, const Tree& found);

// Goes on by a millisecond with each look. Each step begins at a second of its own: what a volume
// records besides, of damage that it met, does not change the times of later steps.
class SteppingClock final : public Clock {
 public:
  Nanos Now() const override { return now_ += 1'000'000; }
  Nanos Monotonic() const override { return Now(); }
  void StartStep(size_t number) { now_ = kStart + static_cast<Nanos>(number + 1) * 1'000'000'000; }

 private:
  static constexpr Nanos kStart = 1'750'000'000LL * 1'000'000'000;
  mutable std::atomic<Nanos> now_{kStart};
};

// Small files, so that a short life fills, seals and rolls several. No thread of its own.
volume::VolumeOptions CrashOptions();

// The store while it is used. Every method answers what the volume answered.
class LivingStore {
 public:
  explicit LivingStore(SimIo& io, volume::VolumeOptions options = CrashOptions())
      : io_(io), options_(options) {}

  Status Open();
  void Close() { volume_.reset(); }
  volume::Volume& operator*() { return *volume_; }
  volume::Volume* operator->() { return volume_.get(); }
  void StartStep(size_t number) { clock_.StartStep(number); }
  bool is_open() const { return volume_ != nullptr; }

  Status AddAgent(const std::string& agent);
  Status Create(const std::string& path);
  Status Commit(const std::string& path, const Bytes& text);
  // A commit that brings only the suffix along.
  Status Extend(const std::string& path, const Bytes& suffix);
  // Chunks by a session, then the commit of the tree's nodes.
  Status CommitTree(const std::string& path, const Bytes& text);
  Status NoteTruncation(const std::string& path, uint64_t size);
  Status MakeDirectory(const std::string& path);
  Status MakeSymlink(const std::string& path, const std::string& target);
  Status MakeLink(const std::string& path, const std::string& new_path);
  Status Unlink(const std::string& path);
  Status RemoveDirectory(const std::string& path);
  Status Rename(const std::string& path, const std::string& new_path, volume::RenameMode mode);
  Status SetXattr(const std::string& path, const std::string& name, std::optional<Bytes> value);
  Status SetMode(const std::string& path, uint32_t mode);

  // What a reopened store must show: noted truncations count as made.
  Result<Tree> ReadTree();

 private:
  struct Place {
    StreamId stream;
    InodeId parent;
    std::string name;
  };
  Result<Place> Resolve(const std::string& path);
  Result<volume::Inode> Find(const std::string& path);
  Status CommitObjects(const std::string& path, const ContentId& content,
                       const std::vector<volume::NewObject>& objects);
  Status ReadDirectory(StreamId stream, InodeId dir, const std::string& prefix, Tree& tree);
  Result<std::string> Describe(StreamId stream, const volume::Inode& inode);
  Result<ContentId> ContentOf(StreamId stream, const volume::Inode& inode);

  SimIo& io_;
  const volume::VolumeOptions options_;
  SteppingClock clock_;
  std::unique_ptr<volume::Volume> volume_;
  std::map<std::pair<StreamId, InodeId>, uint64_t> truncations_;
};

struct Step {
  std::string name;
  bool changes;        // the tree, when it succeeds
  bool makes_durable;  // itself and everything before it, when it succeeds
  std::function<Status(LivingStore&)> run;
};

std::vector<Step> CrashWorkload();

}  // namespace memoirfs::testing
