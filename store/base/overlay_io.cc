#include "store/base/overlay_io.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/base/mutex.h"
#include "store/base/temporary_file.h"

namespace memoirfs {
namespace {

constexpr size_t kCopyPiece = 1U << 20;

// Zeros stay holes: a journal is made of them, mostly.
Status CopyContent(const File& from, File& to) {
  ASSIGN_OR_RETURN(const uint64_t size, from.Size());
  for (uint64_t offset = 0; offset < size; offset += kCopyPiece) {
    ASSIGN_OR_RETURN(const Bytes piece, from.ReadAt(offset, kCopyPiece));
    if (piece.find_first_not_of('\0') == Bytes::npos) continue;
    TRY(to.WriteAt(offset, piece));
  }
  return to.Truncate(size);
}

// One file of the copy, shared by all who have it open. It is `base` until it is first changed;
// one that the copy made has no base, and starts with its `own`.
class Node {
 public:
  Node(std::unique_ptr<File> base, std::unique_ptr<File> own)
      : base_(std::move(base)), own_(std::move(own)) {}

  template <typename Call>
  auto Read(const Call& call) const {
    const ReaderLock lock(mutex_);
    return call(own_ != nullptr ? std::as_const(*own_) : *base_);
  }

  template <typename Call>
  Status Change(const Call& call) {
    const WriterLock lock(mutex_);
    if (own_ == nullptr) {
      ASSIGN_OR_RETURN(auto copy, OpenTemporaryFile());
      TRY(CopyContent(*base_, *copy));
      own_ = std::move(copy);
    }
    return call(*own_);
  }

 private:
  mutable SharedMutex mutex_{LockRank::kOverlay};
  const std::unique_ptr<File> base_;
  std::unique_ptr<File> own_ GUARDED_BY(mutex_);
};

class OverlayFile final : public File {
 public:
  explicit OverlayFile(std::shared_ptr<Node> node) : node_(std::move(node)) {}

  Result<Bytes> ReadAt(uint64_t offset, size_t size) const override {
    return node_->Read([&](const File& file) { return file.ReadAt(offset, size); });
  }
  Status WriteAt(uint64_t offset, ByteView data) override {
    return node_->Change([&](File& file) { return file.WriteAt(offset, data); });
  }
  Status Truncate(uint64_t size) override {
    return node_->Change([&](File& file) { return file.Truncate(size); });
  }
  Result<uint64_t> Size() const override {
    return node_->Read([](const File& file) { return file.Size(); });
  }
  Status DataSync() override { return {}; }
  Status Sync() override { return {}; }
  void StartWriteback(uint64_t, uint64_t) override {}

 private:
  const std::shared_ptr<Node> node_;
};

class OverlayIo final : public FileIo {
 public:
  explicit OverlayIo(FileIo& base) : base_(base) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    const MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(std::shared_ptr<Node> node, Find(path, mode));
    return std::unique_ptr<File>(std::make_unique<OverlayFile>(std::move(node)));
  }

  Status Rename(const std::string& from, const std::string& to) override {
    const MutexLock lock(mutex_);
    TRY(CheckParent(to));
    ASSIGN_OR_RETURN(auto node, FindToChange(from));
    gone_.insert(from);
    files_.erase(from);
    gone_.erase(to);
    files_[to] = std::move(node);
    return {};
  }

  Status Remove(const std::string& path) override {
    const MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
    if (is_directory) return Status(Code::kIsDirectory, Shown(path) + " is a directory");
    files_.erase(path);
    gone_.insert(path);
    return {};
  }

  Status MakeDirectory(const std::string& path) override {
    const MutexLock lock(mutex_);
    TRY(CheckParent(path));
    if (IsDirectory(path).ok()) return Status(Code::kExists, Shown(path));
    gone_.erase(path);
    directories_.insert(path);
    return {};
  }

  Status RemoveDirectory(const std::string& path) override {
    const MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(const auto names, Names(path));
    if (!names.empty()) return Status(Code::kNotEmpty, Shown(path));
    directories_.erase(path);
    gone_.insert(path);
    return {};
  }

  Status SyncDirectory(const std::string&) override { return {}; }

  Result<std::vector<std::string>> List(const std::string& path) override {
    const MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(const std::set<std::string> names, Names(path));
    return std::vector<std::string>(names.begin(), names.end());
  }

  Result<FileFacts> Stat(const std::string& path) override {
    std::shared_ptr<Node> changed;
    {
      const MutexLock lock(mutex_);
      if (directories_.count(path) != 0) return FileFacts{0, true};
      if (const auto found = files_.find(path); found != files_.end()) changed = found->second;
      if (changed == nullptr && !IsOfBase(path)) return Missing(path);
    }
    if (changed == nullptr) return base_.Stat(path);
    ASSIGN_OR_RETURN(const uint64_t size,
                     changed->Read([](const File& file) { return file.Size(); }));
    return FileFacts{size, false};
  }

  Result<SpaceFacts> Space() override { return base_.Space(); }
  const std::string& root() const override { return base_.root(); }

 private:
  std::string Shown(const std::string& path) const { return root() + "/" + path; }
  Status Missing(const std::string& path) const { return {Code::kNotFound, Shown(path)}; }

  // Of a name that the copy has not changed.
  bool IsOfBase(const std::string& path) const REQUIRES(mutex_) {
    if (gone_.count(path) + directories_.count(path) + files_.count(path) != 0) return false;
    return path == "." || path.find('/') == std::string::npos || IsOfBase(ParentOf(path));
  }

  Result<std::shared_ptr<Node>> Find(const std::string& path, OpenMode mode) REQUIRES(mutex_) {
    if (mode == OpenMode::kRead) return FindToRead(path);
    if (mode == OpenMode::kReadWrite) return FindToChange(path);
    const Result<bool> is_directory = IsDirectory(path);
    if (is_directory.code() == Code::kNotFound) return Make(path);
    TRY(is_directory);
    if (mode == OpenMode::kCreate) return Status(Code::kExists, Shown(path));
    return FindToChange(path);
  }

  // Not kept by us: a store has more files than a process may hold open.
  Result<std::shared_ptr<Node>> FindToRead(const std::string& path) REQUIRES(mutex_) {
    if (const auto found = files_.find(path); found != files_.end()) return found->second;
    TRY(CheckParent(path));
    if (!IsOfBase(path)) return Missing(path);
    if (auto open = unchanged_[path].lock()) return open;
    ASSIGN_OR_RETURN(auto file, base_.Open(path, OpenMode::kRead));
    auto node = std::make_shared<Node>(std::move(file), nullptr);
    unchanged_[path] = node;
    return node;
  }

  Result<std::shared_ptr<Node>> FindToChange(const std::string& path) REQUIRES(mutex_) {
    ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
    if (is_directory) return Status(Code::kNotSupported, Shown(path) + " is a directory");
    ASSIGN_OR_RETURN(auto node, FindToRead(path));
    files_[path] = node;
    unchanged_.erase(path);
    return node;
  }

  Result<std::shared_ptr<Node>> Make(const std::string& path) REQUIRES(mutex_) {
    TRY(CheckParent(path));
    ASSIGN_OR_RETURN(auto file, OpenTemporaryFile());
    auto node = std::make_shared<Node>(nullptr, std::move(file));
    gone_.erase(path);
    files_[path] = node;
    return node;
  }

  Status CheckParent(const std::string& path) REQUIRES(mutex_) {
    const std::string parent = ParentOf(path);
    ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(parent));
    return is_directory ? Status() : Status(Code::kNotDirectory, Shown(parent));
  }

  // kNotFound when there is nothing.
  Result<bool> IsDirectory(const std::string& path) REQUIRES(mutex_) {
    if (path == "." || directories_.count(path) != 0) return true;
    if (files_.count(path) != 0) return false;
    TRY(CheckParent(path));
    if (!IsOfBase(path)) return Missing(path);
    ASSIGN_OR_RETURN(const FileFacts facts, base_.Stat(path));
    return facts.is_directory;
  }

  Result<std::set<std::string>> Names(const std::string& path) REQUIRES(mutex_) {
    ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
    if (!is_directory) return Status(Code::kNotDirectory, Shown(path));
    std::set<std::string> names;
    if (IsOfBase(path)) {
      ASSIGN_OR_RETURN(const auto of_base, base_.List(path));
      names.insert(of_base.begin(), of_base.end());
    }
    const std::string prefix = path == "." ? "" : path + "/";
    for (const std::string& gone : gone_) {
      if (ParentOf(gone) == path) names.erase(gone.substr(prefix.size()));
    }
    for (const auto& [name, node] : files_) {
      if (ParentOf(name) == path) names.insert(name.substr(prefix.size()));
    }
    for (const std::string& name : directories_) {
      if (ParentOf(name) == path) names.insert(name.substr(prefix.size()));
    }
    return names;
  }

  FileIo& base_;
  Mutex mutex_{LockRank::kOverlay};
  // What the copy made, moved, or may change, by its path in the copy.
  std::map<std::string, std::shared_ptr<Node>> files_ GUARDED_BY(mutex_);
  // The others that somebody reads just now.
  std::map<std::string, std::weak_ptr<Node>> unchanged_ GUARDED_BY(mutex_);
  std::set<std::string> directories_ GUARDED_BY(mutex_);  // that the copy made
  std::set<std::string> gone_ GUARDED_BY(mutex_);         // names of base that the copy has not
};

}  // namespace

std::unique_ptr<FileIo> MakeOverlayIo(FileIo& base) { return std::make_unique<OverlayIo>(base); }

}  // namespace memoirfs
