#pragma once

// A store opened by this process: its lock, its files, its volume, and the heads known outside it.
// The daemon serves one; a command without a daemon works on one and closes it again.

#include <memory>
#include <string>
#include <vector>

#include "fs/daemon/anchors.h"
#include "store/base/file_io.h"
#include "store/base/mutex.h"
#include "store/volume/store_lock.h"
#include "store/volume/volume.h"

namespace memoirfs::daemon {

struct OpenOptions {
  bool read_only = false;    // not a byte of the store is written: recovery works on a copy
  std::string socket{};      // of a daemon: what the lock file says
  bool log_to_file = false;  // daemon.log in the state directory, instead of stderr
};

// Thread-safe but for opening and closing.
class OpenedStore {
 public:
  // kNotFound with "run init" where there is no store, kLocked where another process holds it. A
  // store whose chains are behind the known heads is opened read-only: see rollback().
  static Result<std::unique_ptr<OpenedStore>> Open(const std::string& path,
                                                   const OpenOptions& options);
  // Notes the heads (unless read-only), checkpoints and unlocks.
  ~OpenedStore();

  volume::Volume& volume() { return *volume_; }
  const std::string& path() const { return path_; }
  // Empty where none can be made: there are no anchors then.
  const std::string& state_directory() const { return state_directory_; }
  bool read_only() const { return read_only_; }

  // Deletes an agent with all that is its own: notes it beside the known heads, decides it in the
  // store, and opens the store anew, which carries it out. Nothing else may use the volume, whose
  // old references are gone afterwards. kBusy where bytes of it are still there.
  Status PurgeAgent(const volume::AgentFacts& agent);

  // What does not agree with the known heads; empty when all does. Looked for before recovery,
  // which writes, and after it.
  const std::vector<volume::VerifyProblem>& rollback() const { return rollback_; }
  std::string rollback_reason() const;
  bool anchored() const;
  // Notes the chains' heads outside the store. Does nothing when read-only.
  Status UpdateAnchors();

 private:
  OpenedStore(std::string path, volume::StoreLock lock);
  Status PrepareState(bool log_to_file);
  Status OpenVolume(bool read_only);
  Status LoadAnchors();
  Status CheckAnchors();
  Status Alarm(std::vector<volume::VerifyProblem> problems);

  const std::string path_;
  volume::StoreLock lock_;
  std::unique_ptr<FileIo> disk_;
  std::unique_ptr<FileIo> copy_;  // once it is read-only: asked for, or evidence of a rollback
  std::unique_ptr<volume::Volume> volume_;
  bool read_only_ = false;
  std::string state_directory_;
  std::vector<volume::VerifyProblem> rollback_;
  mutable Mutex anchors_mutex_{LockRank::kSession};
  std::optional<Anchors> anchors_ GUARDED_BY(anchors_mutex_);
};

// kNotFound with what to do when `path` holds no store.
Status CheckStoreExists(const std::string& path);

// False on a read-only medium, or where this user may not write.
bool IsWritable(const std::string& path);

}  // namespace memoirfs::daemon
