#pragma once

// Tells mounts of what changed through another one. Each mount has a queue and a thread of its
// own, so that a kernel that is slow to answer holds up only its own mount, and so that what
// happened in one directory arrives in order.
//
// Post never waits: the thread that posts may be the one that has to answer a READ which the
// kernel's invalidation waits for. A queue is bounded; an equal event that still waits is not
// queued again, and beyond the bound events are dropped, with a line in the log: the mount then
// shows old names until its kernel's timeouts.
//
// Thread-safe. Never call it with a lock held.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/vfs/vfs.h"
#include "store/base/mutex.h"

namespace memoirfs::vfs {

struct Event {
  enum class Kind : uint8_t { kEntry, kContent, kAttributes };
  Kind kind{};
  NodeId node;       // of kEntry: the directory
  std::string name;  // of kEntry
  friend auto operator<=>(const Event&, const Event&) = default;
};

using ViewId = Strong<struct ViewIdTag, uint64_t>;

class Notifications {
 public:
  Notifications();
  ~Notifications();

  // `only`: the one stream that the view shows. `notifier` may be null: nobody is told.
  ViewId Add(std::optional<StreamId> only, KernelNotifier* notifier);
  // Returns when the notifier is not called any more.
  void Remove(ViewId view);

  // To all views but `origin` that show `stream` (nullopt: to those that show all agents).
  void Post(ViewId origin, std::optional<StreamId> stream, const Event& event);
  // Returns when what was posted until now is told, or after `patience`.
  void WaitUntilTold(std::chrono::milliseconds patience);
  // Nothing waits for `view`: what its kernel has cached is what there is.
  bool Idle(ViewId view);

 private:
  class Queue;

  Mutex mutex_;
  uint64_t next_ GUARDED_BY(mutex_) = 1;
  std::vector<std::shared_ptr<Queue>> queues_ GUARDED_BY(mutex_);
};

}  // namespace memoirfs::vfs
