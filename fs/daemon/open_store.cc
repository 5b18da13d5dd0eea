#include "fs/daemon/open_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include "fs/daemon/paths.h"
#include "store/base/clock.h"
#include "store/base/log.h"
#include "store/base/overlay_io.h"
#include "store/volume/layout.h"

namespace memoirfs::daemon {
namespace {

constexpr off_t kMaxLogBytes = 8 << 20;

// One old log is kept.
Status StartLogFile(const std::string& state_directory) {
  const std::string path = state_directory + "/daemon.log";
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0 && st.st_size > kMaxLogBytes) {
    if (::rename(path.c_str(), (path + ".1").c_str()) != 0) {
      return Status::FromErrno(errno, "rename " + path);
    }
  }
  return LogToFile(path);
}

}  // namespace

Status CheckStoreExists(const std::string& path) {
  const auto io = OpenRealIo(path);
  if (io.code() == Code::kNotFound) return volume::NoStoreAt(path);
  if (!io.ok()) return io.status();
  if (const auto found = (*io)->Stat("FORMAT"); found.code() != Code::kNotFound) {
    return status_internal::AsStatus(found);
  }
  return status_internal::AsStatus(volume::ReadFormat(**io));  // says what is there instead
}

bool IsWritable(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }

OpenedStore::OpenedStore(std::string path, volume::StoreLock lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

Result<std::unique_ptr<OpenedStore>> OpenedStore::Open(const std::string& path,
                                                       const OpenOptions& options) {
  TRY(CheckStoreExists(path));
  ASSIGN_OR_RETURN(volume::StoreLock lock, options.read_only
                                               ? volume::StoreLock::AcquireToRead(path)
                                               : volume::StoreLock::Acquire(path, options.socket));
  std::unique_ptr<OpenedStore> store(new OpenedStore(path, std::move(lock)));
  ASSIGN_OR_RETURN(store->disk_, OpenRealIo(path));
  TRY(store->PrepareState(options.log_to_file));
  TRY(store->LoadAnchors());
  TRY(store->OpenVolume(options.read_only || !store->rollback_.empty()));
  TRY(store->CheckAnchors());
  return store;
}

OpenedStore::~OpenedStore() {
  if (volume_ == nullptr) return;
  const Status status = UpdateAnchors();
  if (!status.ok()) Log(LogLevel::kError, "daemon.anchor", status.ToString());
}

Status OpenedStore::PrepareState(bool log_to_file) {
  ASSIGN_OR_RETURN(const volume::StoreFormat format, volume::ReadFormat(*disk_));
  TRY(volume::CheckDirectories(*disk_));
  Result<std::string> directory = StateDirectory(format.store_id, path_);
  // Something odd in place of a file: going on without anchors would hide what they know.
  if (directory.code() == Code::kCorrupt) return directory.status();
  if (!directory.ok()) {
    // A container may have no place of its own to keep state in: it has no anchors then.
    Log(LogLevel::kWarn, "daemon.no-state", directory.status().ToString());
    return {};
  }
  state_directory_ = std::move(directory).value();
  // Before the volume is opened: what its recovery has to say belongs into the log.
  return log_to_file ? StartLogFile(state_directory_) : Status();
}

Status OpenedStore::OpenVolume(bool read_only) {
  volume::VolumeOptions options;
  options.read_only = read_only;
  options.background = !read_only;
  volume_.reset();  // two volumes of one store at a time would be two writers
  if (read_only && copy_ == nullptr) copy_ = MakeOverlayIo(*disk_);
  ASSIGN_OR_RETURN(volume_, volume::Volume::Open(copy_ ? *copy_ : *disk_, Clock::Real(), options));
  read_only_ = read_only;
  return {};
}

Status OpenedStore::LoadAnchors() {
  if (state_directory_.empty()) return {};
  ASSIGN_OR_RETURN(Anchors anchors, Anchors::Load(state_directory_));
  ASSIGN_OR_RETURN(auto problems, anchors.CheckOnDisk(*disk_));
  {
    const MutexLock lock(anchors_mutex_);
    anchors_ = std::move(anchors);
  }
  return Alarm(std::move(problems));
}

// What was right on the disk and is not any more was changed by recovery: an alarm as well.
Status OpenedStore::CheckAnchors() {
  std::vector<volume::VerifyProblem> problems;
  {
    const MutexLock lock(anchors_mutex_);
    if (!anchors_ || !rollback_.empty()) return {};
    ASSIGN_OR_RETURN(problems, anchors_->Check(*volume_));
  }
  TRY(Alarm(std::move(problems)));
  return rollback_.empty() || read_only_ ? Status() : OpenVolume(true);
}

Status OpenedStore::Alarm(std::vector<volume::VerifyProblem> problems) {
  if (problems.empty()) return {};
  rollback_ = std::move(problems);
  Log(LogLevel::kError, "daemon.rollback", rollback_reason());
  const MutexLock lock(anchors_mutex_);
  return anchors_->KeepFindings(rollback_, Clock::Real().Now());
}

Status OpenedStore::PurgeAgent(const volume::AgentFacts& agent) {
  if (read_only_) return Status(Code::kReadOnly, "the store is open read-only");
  {
    const MutexLock lock(anchors_mutex_);
    if (anchors_) TRY(anchors_->NotePurge(agent.stream));
  }
  TRY(volume_->RemoveAgent(agent.name, true));
  TRY(OpenVolume(false));
  TRY(UpdateAnchors());
  const std::string pending = volume_->Facts().purge_pending;
  if (pending.empty()) return {};
  return Status(Code::kBusy, "agent '" + agent.name + "' is gone, but bytes of it are still " +
                                 "in the store (" + pending +
                                 "). Each command that opens the store tries again");
}

std::string OpenedStore::rollback_reason() const {
  if (rollback_.empty()) return "";
  const volume::VerifyProblem& first = rollback_.front();
  return "the store is not what it was: " + first.where +
         ": known outside the store: " + first.expected + "; found: " + first.found +
         ". If an older state was put back on " + "purpose, move " + state_directory_ +
         "/heads.json away";
}

bool OpenedStore::anchored() const {
  const MutexLock lock(anchors_mutex_);
  return anchors_.has_value() && !anchors_->empty();
}

Status OpenedStore::UpdateAnchors() {
  const MutexLock lock(anchors_mutex_);
  if (read_only_ || !anchors_ || volume_->Facts().read_only) return {};
  return anchors_->Update(*volume_);
}

}  // namespace memoirfs::daemon
