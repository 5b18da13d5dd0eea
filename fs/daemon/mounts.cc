#include "fs/daemon/mounts.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>

#include "fs/daemon/control_socket.h"
#include "store/base/log.h"

namespace memoirfs::daemon {

bool IsLackOfRoom(Code code) { return IsFull(code) || code == Code::kTooLarge; }

struct Mounts::Entry {
  enum class State { kStarting, kServing, kStopping };

  MountFacts facts;
  std::atomic<State> state{State::kStarting};
  std::atomic<bool> gone{false};
  // Set before `state` leaves kStarting, taken away under the table's mutex by whoever set
  // kStopping, who ends it without a lock.
  std::unique_ptr<fuse::Session> session;

  // One of several that want to end it wins.
  bool Claim() {
    State serving = State::kServing;
    return state.compare_exchange_strong(serving, State::kStopping);
  }
};

Mounts::Mounts(vfs::Vfs& vfs, std::string source, SessionFactory factory,
               std::function<void()> changed)
    : vfs_(vfs),
      source_(std::move(source)),
      factory_(std::move(factory)),
      changed_(std::move(changed)) {}

Mounts::~Mounts() = default;

Status Mounts::Mount(const MountRequest& request) {
  auto entry = std::make_shared<Entry>();
  entry->facts = {request.mountpoint, request.agent, request.read_only, request.allow_other, ""};
  {
    const MutexLock lock(mutex_);
    TRY(CheckFree(request));
    entries_.push_back(entry);
  }
  const Status status = Start(request, entry);
  if (!status.ok()) {
    Erase(entry);
    changed_();
  }
  return status;
}

Status Mounts::CheckFree(const MountRequest& request) {
  if (closed_) return DaemonEnds();
  for (const auto& entry : entries_) {
    if (entry->facts.mountpoint == request.mountpoint && !entry->gone) {
      return Status(Code::kBusy, request.mountpoint + " is mounted already");
    }
  }
  return {};
}

Status Mounts::Start(const MountRequest& request, const std::shared_ptr<Entry>& entry) {
  fuse::SessionOptions options;
  options.mountpoint = request.mountpoint;
  options.source = source_;
  options.allow_other = request.allow_other;
  options.read_only = request.read_only;
  const fuse::ViewFactory make_view = [&](vfs::KernelNotifier* notifier) {
    return vfs_.OpenView({request.agent, request.read_only}, notifier);
  };
  ASSIGN_OR_RETURN(entry->session, factory_(options, make_view));
  // Weak: a session that owned its entry would own itself.
  entry->session->OnGone([weak = std::weak_ptr<Entry>(entry), changed = changed_] {
    if (const auto gone = weak.lock()) gone->gone = true;
    changed();
  });
  entry->state = Entry::State::kServing;
  return {};
}

Result<std::shared_ptr<Mounts::Entry>> Mounts::TakeForUnmount(const std::string& mountpoint) {
  const MutexLock lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->facts.mountpoint != mountpoint) continue;
    if (entry->Claim()) return entry;
    return Status(Code::kBusy, mountpoint + " is being mounted or unmounted right now");
  }
  return Status(Code::kNotFound,
                "nothing of this store is mounted at " + mountpoint + ". See: memoirfs status");
}

Status Mounts::Unmount(const std::string& mountpoint, bool lazy) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, TakeForUnmount(mountpoint));
  Status status = entry->session->view().CommitAll();
  if (IsLackOfRoom(status.code())) {
    // Who closed the file was told so; the mount is not held for it.
    Log(LogLevel::kError, "daemon.unsaved", mountpoint + ": " + status.ToString());
    status = {};
  }
  if (status.ok() || lazy) status = entry->session->Unmount(lazy);
  if (!status.ok() && !entry->gone) {
    entry->state = Entry::State::kServing;
    if (status.code() != Code::kBusy) return status;
    return Status(Code::kBusy, mountpoint + " is in use: files are open there, or it is the " +
                                   "working directory of a process. Close them (fuser -vm " +
                                   mountpoint + " names them) and try again");
  }
  Erase(entry);
  changed_();
  return {};
}

void Mounts::UnmountAll() {
  Entries all;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    all = entries_;
  }
  for (const auto& entry : all) {
    if (!entry->Claim()) continue;
    Status status = entry->session->view().CommitAll();
    if (!status.ok()) Log(LogLevel::kError, "daemon.commit", status.ToString());
    status = entry->session->Unmount(false);
    if (!status.ok() && !entry->gone) status = entry->session->Unmount(true);
    if (!status.ok() && !entry->gone) Log(LogLevel::kError, "daemon.unmount", status.ToString());
    Erase(entry);
  }
}

bool Mounts::CloseIfEmpty() {
  const MutexLock lock(mutex_);
  if (entries_.empty()) closed_ = true;
  return entries_.empty();
}

void Mounts::Reap() {
  Entries gone;
  {
    const MutexLock lock(mutex_);
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(gone),
                 [](const auto& entry) { return entry->gone && entry->Claim(); });
  }
  for (const auto& entry : gone) {
    const Status status = entry->session->view().CommitAll();
    if (!status.ok()) Log(LogLevel::kError, "daemon.commit", status.ToString());
    Erase(entry);
    Log(LogLevel::kInfo, "daemon.unmounted", entry->facts.mountpoint);
  }
}

void Mounts::Erase(const std::shared_ptr<Entry>& entry) {
  std::unique_ptr<fuse::Session> session;  // ends after the lock is gone: it joins threads
  const MutexLock lock(mutex_);
  session = std::move(entry->session);
  entries_.remove(entry);
}

std::vector<MountFacts> Mounts::List() const {
  std::vector<MountFacts> facts;
  // Under the lock: a thread of a session may ask, and must not become its last owner, who joins
  // it.
  const MutexLock lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->state == Entry::State::kStarting || entry->session == nullptr || entry->gone) {
      continue;
    }
    facts.push_back(entry->facts);
    facts.back().metrics = entry->session->MetricsJson();
  }
  return facts;
}

size_t Mounts::count() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace memoirfs::daemon
