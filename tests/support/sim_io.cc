#include "tests/support/sim_io.h"

#include <algorithm>
#include <utility>

#include "tests/support/sim_disk.h"

namespace memoirfs::testing {
namespace {

class SimFile final : public File {
 public:
  SimFile(std::shared_ptr<SimDisk> disk, SimNodePtr node, std::string path, bool writable)
      : disk_(std::move(disk)), node_(std::move(node)), path_(std::move(path)), write_(writable) {}

  Result<Bytes> ReadAt(uint64_t offset, size_t size) const override {
    MutexLock lock(disk_->mutex);
    TRY(disk_->Enter(SimCall::kRead, path_));
    const Bytes& bytes = node_->content.bytes();
    return offset >= bytes.size() ? Bytes() : bytes.substr(offset, size);
  }

  Status WriteAt(uint64_t offset, ByteView data) override {
    MutexLock lock(disk_->mutex);
    uint64_t size = data.size();
    const Status failure = disk_->EnterSized(SimCall::kWrite, path_, size);
    TRY(CheckWritable());
    TRY(CheckRoom(offset + size));
    if (size > 0) node_->content.Write(offset, data.substr(0, size));
    return failure;
  }

  Status DataSync() override { return SyncAs(SimCall::kDataSync); }
  Status Sync() override { return SyncAs(SimCall::kSync); }

  Status Truncate(uint64_t size) override {
    MutexLock lock(disk_->mutex);
    TRY(disk_->Enter(SimCall::kTruncate, path_));
    TRY(CheckWritable());
    TRY(CheckRoom(size));
    node_->content.Truncate(size);
    return {};
  }

  Result<uint64_t> Size() const override {
    MutexLock lock(disk_->mutex);
    TRY(disk_->Enter(SimCall::kSize, path_));
    return uint64_t{node_->content.bytes().size()};
  }

  void StartWriteback(uint64_t, uint64_t) override {}

 private:
  Status SyncAs(SimCall kind) {
    if (const std::function<void()> hook = SyncHook()) hook();
    MutexLock lock(disk_->mutex);
    const Status failure = disk_->Enter(kind, path_);
    if (failure.ok()) {
      node_->content.Sync();
    } else if (!disk_->crashed) {
      node_->content.ForgetUnsynced();
    }
    return failure;
  }

  std::function<void()> SyncHook() const {
    MutexLock lock(disk_->mutex);
    return disk_->before_sync;
  }

  Status CheckWritable() const {
    return write_ ? Status() : Status::FromErrno(EBADF, "write to " + path_);
  }
  Status CheckRoom(uint64_t end) const REQUIRES(disk_->mutex) {
    const uint64_t present = node_->content.bytes().size();
    if (end <= present || disk_->HasRoomFor(end - present)) return {};
    return Status::FromErrno(ENOSPC, "write to " + path_);
  }

  const std::shared_ptr<SimDisk> disk_;
  const SimNodePtr node_;
  const std::string path_;
  const bool write_;
};

std::string LastPart(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Status Failed(int err, std::string_view what, const std::string& path) {
  return Status::FromErrno(err, std::string(what) + " " + path);
}

}  // namespace

SimIo::SimIo() : disk_(std::make_shared<SimDisk>()) {}
SimIo::SimIo(std::shared_ptr<SimDisk> disk) : disk_(std::move(disk)) {}
SimIo::~SimIo() = default;

// --- faults

void SimIo::FailAt(uint64_t nth, int err, SimCall kind, SimFault fault) {
  using Effect = SimDisk::Fault::Effect;
  MutexLock lock(disk_->mutex);
  disk_->Arm({kind, 0, err, fault == SimFault::kOnce ? Effect::kFailOnce : Effect::kFailForever},
             nth);
}

void SimIo::ShortWriteAt(uint64_t nth, int err) {
  MutexLock lock(disk_->mutex);
  disk_->Arm({SimCall::kWrite, 0, err, SimDisk::Fault::Effect::kShortWrite}, nth);
}

void SimIo::CrashAt(uint64_t nth, SimCall kind) {
  MutexLock lock(disk_->mutex);
  disk_->Arm({kind, 0, EIO, SimDisk::Fault::Effect::kCrash}, nth);
}

void SimIo::ClearFaults() {
  MutexLock lock(disk_->mutex);
  disk_->faults.clear();
}

void SimIo::BeforeEachSync(std::function<void()> hook) {
  MutexLock lock(disk_->mutex);
  disk_->before_sync = std::move(hook);
}

void SimIo::SetCapacity(uint64_t bytes) {
  MutexLock lock(disk_->mutex);
  disk_->capacity = bytes;
}

uint64_t SimIo::calls(SimCall kind) const {
  MutexLock lock(disk_->mutex);
  return disk_->counts[static_cast<size_t>(kind)];
}

bool SimIo::crashed() const {
  MutexLock lock(disk_->mutex);
  return disk_->crashed;
}

// --- what is left

std::unique_ptr<SimIo> SimIo::AfterPowerCut(uint64_t seed) const {
  MutexLock lock(disk_->mutex);
  return std::unique_ptr<SimIo>(new SimIo(disk_->AfterPowerCut(seed)));
}

std::unique_ptr<SimIo> SimIo::AfterKill() const {
  MutexLock lock(disk_->mutex);
  return std::unique_ptr<SimIo>(new SimIo(disk_->AfterKill()));
}

bool SimIo::Overwrite(const std::string& path, uint64_t offset, ByteView bytes) {
  MutexLock lock(disk_->mutex);
  const SimNodePtr node = disk_->Find(path);
  if (node == nullptr || node->is_directory) return false;
  const uint64_t size = node->content.bytes().size();
  if (offset > size || bytes.size() > size - offset) return false;
  node->content.Overwrite(offset, bytes);
  return true;
}

// --- FileIo

Result<std::unique_ptr<File>> SimIo::Open(const std::string& path, OpenMode mode) {
  MutexLock lock(disk_->mutex);
  SimNodePtr node = disk_->Find(path);
  const bool may_create = mode == OpenMode::kCreate || mode == OpenMode::kOpenOrCreate;
  const bool creates = node == nullptr && may_create;
  TRY(disk_->Enter(creates ? SimCall::kCreate : SimCall::kOpen, path));
  const SimNodePtr directory = disk_->DirectoryOf(path);
  if (directory == nullptr || (node == nullptr && !creates)) return Failed(ENOENT, "open", path);
  if (node != nullptr && mode == OpenMode::kCreate) return Failed(EEXIST, "open", path);
  if (node != nullptr && node->is_directory) return Failed(EISDIR, "open", path);
  if (creates) {
    node = disk_->NewNode(false);
    disk_->ChangeNames({{directory, LastPart(path), node}});
  }
  return std::unique_ptr<File>(
      std::make_unique<SimFile>(disk_, node, path, mode != OpenMode::kRead));
}

Status SimIo::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kRename, from));
  const SimNodePtr node = disk_->Find(from);
  const SimNodePtr to_directory = disk_->DirectoryOf(to);
  if (node == nullptr || to_directory == nullptr) return Failed(ENOENT, "rename", from);
  const SimNodePtr replaced = disk_->Find(to);
  if (replaced == node) return {};
  if (replaced != nullptr && replaced->is_directory != node->is_directory) {
    return Failed(replaced->is_directory ? EISDIR : ENOTDIR, "rename", from);
  }
  if (replaced != nullptr && !replaced->names.empty()) return Failed(ENOTEMPTY, "rename", from);
  disk_->ChangeNames(
      {{to_directory, LastPart(to), node}, {disk_->DirectoryOf(from), LastPart(from), nullptr}});
  return {};
}

Status SimIo::Remove(const std::string& path) {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kRemove, path));
  const SimNodePtr node = disk_->Find(path);
  if (node == nullptr) return Failed(ENOENT, "remove", path);
  if (node->is_directory) return Failed(EISDIR, "remove", path);
  disk_->ChangeNames({{disk_->DirectoryOf(path), LastPart(path), nullptr}});
  return {};
}

Status SimIo::MakeDirectory(const std::string& path) {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kMakeDirectory, path));
  const SimNodePtr directory = disk_->DirectoryOf(path);
  if (directory == nullptr) return Failed(ENOENT, "make directory", path);
  if (disk_->Find(path) != nullptr) return Failed(EEXIST, "make directory", path);
  disk_->ChangeNames({{directory, LastPart(path), disk_->NewNode(true)}});
  return {};
}

Status SimIo::RemoveDirectory(const std::string& path) {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kRemove, path));
  const SimNodePtr node = disk_->Find(path);
  if (node == nullptr) return Failed(ENOENT, "remove directory", path);
  if (!node->is_directory) return Failed(ENOTDIR, "remove directory", path);
  if (!node->names.empty()) return Failed(ENOTEMPTY, "remove directory", path);
  disk_->ChangeNames({{disk_->DirectoryOf(path), LastPart(path), nullptr}});
  return {};
}

Status SimIo::SyncDirectory(const std::string& path) {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kSyncDirectory, path));
  const SimNodePtr node = disk_->Find(path);
  if (node == nullptr || !node->is_directory) return Failed(ENOTDIR, "sync directory", path);
  disk_->SyncNames(node);
  return {};
}

Result<std::vector<std::string>> SimIo::List(const std::string& path) {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kList, path));
  const SimNodePtr node = disk_->Find(path);
  if (node == nullptr || !node->is_directory) return Failed(ENOENT, "list", path);
  std::vector<std::string> names;
  for (const auto& entry : node->names) names.push_back(entry.first);
  return names;
}

Result<FileFacts> SimIo::Stat(const std::string& path) {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kStat, path));
  const SimNodePtr node = disk_->Find(path);
  if (node == nullptr) return Failed(ENOENT, "stat", path);
  return FileFacts{node->content.bytes().size(), node->is_directory};
}

Result<SpaceFacts> SimIo::Space() {
  MutexLock lock(disk_->mutex);
  TRY(disk_->Enter(SimCall::kSpace, "."));
  return disk_->Space();
}

const std::string& SimIo::root() const {
  static const std::string kRoot = "(simulated)";
  return kRoot;
}

}  // namespace memoirfs::testing
