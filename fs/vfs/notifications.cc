#include "fs/vfs/notifications.h"

#include <pthread.h>

#include <deque>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "store/base/log.h"

namespace memoirfs::vfs {
namespace {

constexpr size_t kMaxWaiting = 1U << 16;

}  // namespace

class Notifications::Queue {
 public:
  Queue(ViewId id, std::optional<StreamId> only, KernelNotifier* notifier)
      : id_(id), only_(only), notifier_(notifier) {}

  ~Queue() { Stop(); }

  ViewId id() const { return id_; }

  bool Wants(std::optional<StreamId> stream) const {
    return notifier_ != nullptr && (!only_ || only_ == stream);
  }

  void Push(const Event& event) EXCLUDES(mutex_) {
    bool dropped = false;
    {
      MutexLock lock(mutex_);
      if (stopped_ || waiting_.count(event) != 0) return;
      dropped = events_.size() >= kMaxWaiting;
      if (!dropped) {
        waiting_.insert(event);
        events_.push_back(event);
        ++pushed_;
        StartThread();
      }
    }
    if (dropped) {
      Log(LogLevel::kWarn, "vfs.notification-dropped",
          "a mount's kernel does not take notifications: it may show old names");
      return;
    }
    changed_.NotifyAll();
  }

  bool Idle() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return events_.empty() && !telling_;
  }

  void WaitUntilTold(std::chrono::steady_clock::time_point deadline) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const uint64_t last = pushed_;
    while (told_ < last && !stopped_) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return;
      changed_.WaitFor(mutex_, left);
    }
  }

  void Stop() EXCLUDES(mutex_) {
    std::thread thread;
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      thread = std::move(thread_);
    }
    changed_.NotifyAll();
    if (thread.joinable()) thread.join();
  }

 private:
  // Most mounts are the only one of their store: no thread until it is needed.
  void StartThread() REQUIRES(mutex_) {
    if (thread_.joinable()) return;
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error& error) {  // the next event tries again
      Log(LogLevel::kWarn, "vfs.notification-thread", error.what());
      return;
    }
    pthread_setname_np(thread_.native_handle(), "memoirfs-notify");
  }

  void Run() EXCLUDES(mutex_) {
    while (std::optional<Event> event = Next()) Tell(*event);
  }

  std::optional<Event> Next() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (std::exchange(telling_, false)) {
      ++told_;
      changed_.NotifyAll();
    }
    while (events_.empty() && !stopped_) changed_.Wait(mutex_);
    if (stopped_) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    waiting_.erase(event);
    telling_ = true;
    return event;
  }

  void Tell(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kEntry:
        return notifier_->EntryChanged(event.node, event.name);
      case Event::Kind::kContent:
        return notifier_->ContentChanged(event.node);
      case Event::Kind::kAttributes:
        return notifier_->AttributesChanged(event.node);
    }
  }

  const ViewId id_;
  const std::optional<StreamId> only_;
  KernelNotifier* const notifier_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Event> events_ GUARDED_BY(mutex_);
  std::set<Event> waiting_ GUARDED_BY(mutex_);
  uint64_t pushed_ GUARDED_BY(mutex_) = 0;
  uint64_t told_ GUARDED_BY(mutex_) = 0;
  bool telling_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

Notifications::Notifications() = default;
Notifications::~Notifications() = default;

ViewId Notifications::Add(std::optional<StreamId> only, KernelNotifier* notifier) {
  MutexLock lock(mutex_);
  const ViewId id{next_++};
  queues_.push_back(std::make_shared<Queue>(id, only, notifier));
  return id;
}

void Notifications::Remove(ViewId view) {
  std::shared_ptr<Queue> removed;
  {
    MutexLock lock(mutex_);
    for (auto it = queues_.begin(); it != queues_.end(); ++it) {
      if ((*it)->id() != view) continue;
      removed = std::move(*it);
      queues_.erase(it);
      break;
    }
  }
  if (removed) removed->Stop();
}

void Notifications::Post(ViewId origin, std::optional<StreamId> stream, const Event& event) {
  std::vector<std::shared_ptr<Queue>> told;
  {
    MutexLock lock(mutex_);
    for (const auto& queue : queues_) {
      if (queue->id() != origin && queue->Wants(stream)) told.push_back(queue);
    }
  }
  for (const auto& queue : told) queue->Push(event);
}

void Notifications::WaitUntilTold(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::vector<std::shared_ptr<Queue>> queues;
  {
    MutexLock lock(mutex_);
    queues = queues_;
  }
  for (const auto& queue : queues) queue->WaitUntilTold(deadline);
}

bool Notifications::Idle(ViewId view) {
  std::shared_ptr<Queue> found;
  {
    MutexLock lock(mutex_);
    for (const auto& queue : queues_) {
      if (queue->id() == view) found = queue;
    }
  }
  return !found || found->Idle();
}

}  // namespace memoirfs::vfs
