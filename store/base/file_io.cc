#include "store/base/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "store/base/regular_file.h"
#include "store/base/temporary_file.h"
#include "store/base/unique_fd.h"

namespace memoirfs {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

// Retries a call that a signal interrupted.
template <typename Call>
auto Uninterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

class RealFile final : public File {
 public:
  RealFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<Bytes> ReadAt(uint64_t offset, size_t size) const override {
    Bytes bytes(size, '\0');
    size_t done = 0;
    while (done < size) {
      const ssize_t n = Uninterrupted([&] {
        return ::pread(fd_.get(), bytes.data() + done, size - done,
                       static_cast<off_t>(offset + done));
      });
      if (n < 0) return Failed("read");
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
    return bytes;
  }

  Status WriteAt(uint64_t offset, ByteView data) override {
    while (!data.empty()) {
      const ssize_t n = Uninterrupted([&] {
        return ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
      });
      if (n < 0) return Failed("write");
      data.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }

  Status DataSync() override { return Checked(::fdatasync(fd_.get()), "fdatasync"); }
  Status Sync() override { return Checked(::fsync(fd_.get()), "fsync"); }

  Status Truncate(uint64_t size) override {
    return Checked(static_cast<int>(Uninterrupted(
                       [&] { return ::ftruncate(fd_.get(), static_cast<off_t>(size)); })),
                   "truncate");
  }

  Result<uint64_t> Size() const override {
    struct stat st {};
    if (::fstat(fd_.get(), &st) != 0) return Failed("stat");
    return static_cast<uint64_t>(st.st_size);
  }

  void StartWriteback(uint64_t offset, uint64_t size) override {
    ::sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                      SYNC_FILE_RANGE_WRITE);
  }

 private:
  Status Failed(std::string_view what) const {
    const int err = errno;
    return Status::FromErrno(err, std::string(what) + " " + path_);
  }
  Status Checked(int result, std::string_view what) const {
    return result == 0 ? Status() : Failed(what);
  }

  UniqueFd fd_;
  const std::string path_;
};

int FlagsOf(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kReadWrite:
      return O_RDWR;
    case OpenMode::kCreate:
      return O_RDWR | O_CREAT | O_EXCL;
    case OpenMode::kOpenOrCreate:
      return O_RDWR | O_CREAT;
  }
  return O_RDONLY;
}

class RealIo final : public FileIo {
 public:
  RealIo(UniqueFd dir, std::string root) : dir_(std::move(dir)), root_(std::move(root)) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, FlagsOf(mode)));
    return std::unique_ptr<File>(std::make_unique<RealFile>(std::move(fd), Shown(path)));
  }

  Status Rename(const std::string& from, const std::string& to) override {
    ASSIGN_OR_RETURN(UniqueFd from_dir, OpenDirectory(ParentOf(from)));
    ASSIGN_OR_RETURN(UniqueFd to_dir, OpenDirectory(ParentOf(to)));
    return Checked(::renameat(from_dir.get(), LastPart(from), to_dir.get(), LastPart(to)),
                   "rename to " + to, from);
  }

  Status Remove(const std::string& path) override { return RemoveName(path, 0); }
  Status RemoveDirectory(const std::string& path) override {
    return RemoveName(path, AT_REMOVEDIR);
  }

  Status MakeDirectory(const std::string& path) override {
    ASSIGN_OR_RETURN(UniqueFd dir, OpenDirectory(ParentOf(path)));
    return Checked(::mkdirat(dir.get(), LastPart(path), kDirectoryMode), "make directory", path);
  }

  Status SyncDirectory(const std::string& path) override {
    ASSIGN_OR_RETURN(UniqueFd dir, OpenDirectory(path));
    return Checked(::fsync(dir.get()), "fsync of directory", path);
  }

  Result<std::vector<std::string>> List(const std::string& path) override {
    ASSIGN_OR_RETURN(UniqueFd dir, OpenDirectory(path));
    DIR* stream = ::fdopendir(dir.get());
    if (stream == nullptr) return Failed("list", path);
    dir.Release();
    std::vector<std::string> names;
    errno = 0;  // readdir(3): the end and a failure differ in errno only
    while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe)
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const Status failure = errno == 0 ? Status() : Failed("list", path);
    ::closedir(stream);
    TRY(failure);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<FileFacts> Stat(const std::string& path) override {
    ASSIGN_OR_RETURN(UniqueFd dir, OpenDirectory(ParentOf(path)));
    struct stat st {};
    if (::fstatat(dir.get(), LastPart(path), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return Failed("stat", path);
    }
    return FileFacts{static_cast<uint64_t>(st.st_size), S_ISDIR(st.st_mode)};
  }

  Result<SpaceFacts> Space() override {
    struct statvfs vfs {};
    if (::fstatvfs(dir_.get(), &vfs) != 0) return Failed("statvfs", ".");
    return SpaceFacts{vfs.f_frsize, vfs.f_blocks, vfs.f_bavail, vfs.f_files, vfs.f_favail};
  }

  const std::string& root() const override { return root_; }

 private:
  Result<UniqueFd> OpenBeneath(const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<uint64_t>(flags) | kRegularFileFlags;
    how.mode = (flags & O_CREAT) != 0 ? kFileMode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const long fd = Uninterrupted(
        [&] { return ::syscall(SYS_openat2, dir_.get(), path.c_str(), &how, sizeof(how)); });
    if (fd < 0) return Failed("open", path);
    return UniqueFd(static_cast<int>(fd));
  }

  Result<UniqueFd> OpenFile(const std::string& path, int flags) {
    Result<UniqueFd> opened = OpenBeneath(path, flags);
    if (opened.ok()) return OnlyRegular(std::move(opened).value(), Shown(path));
    const Result<UniqueFd> dir = OpenDirectory(ParentOf(path));
    if (!dir.ok()) return opened.status();
    return FailureOfOpening(opened.status(), dir->get(), LastPart(path), Shown(path));
  }

  Result<UniqueFd> OpenDirectory(const std::string& path) {
    return OpenBeneath(path, O_RDONLY | O_DIRECTORY);
  }

  Status RemoveName(const std::string& path, int flags) {
    ASSIGN_OR_RETURN(UniqueFd dir, OpenDirectory(ParentOf(path)));
    return Checked(::unlinkat(dir.get(), LastPart(path), flags), "remove", path);
  }

  static const char* LastPart(const std::string& path) {
    const size_t slash = path.rfind('/');
    return path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  }
  std::string Shown(const std::string& path) const { return root_ + "/" + path; }
  Status Failed(std::string_view what, const std::string& path) const {
    const int err = errno;
    return Status::FromErrno(err, std::string(what) + " " + Shown(path));
  }
  Status Checked(int result, std::string_view what, const std::string& path) const {
    return result == 0 ? Status() : Failed(what, path);
  }

  UniqueFd dir_;
  const std::string root_;
};

}  // namespace

Result<std::unique_ptr<FileIo>> OpenRealIo(const std::string& root) {
  UniqueFd dir(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (dir.get() < 0) {
    const int err = errno;
    return Status::FromErrno(err, "open store directory " + root);
  }
  return std::unique_ptr<FileIo>(std::make_unique<RealIo>(std::move(dir), root));
}

Result<std::unique_ptr<File>> OpenTemporaryFile() {
  const char* directory = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  std::string path = directory != nullptr && *directory != '\0' ? directory : "/tmp";
  path += "/memoirfs-XXXXXX";
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));  // 0600
  if (fd.get() < 0) {
    const int err = errno;
    return Status::FromErrno(err, "make a temporary file " + path);
  }
  ::unlink(path.c_str());
  return std::unique_ptr<File>(std::make_unique<RealFile>(std::move(fd), path));
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Result<Bytes> ReadWholeFile(FileIo& io, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(path, OpenMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return file->ReadAt(0, size);
}

Result<std::unique_ptr<File>> CreateAnew(FileIo& io, const std::string& path) {
  auto made = io.Open(path, OpenMode::kCreate);
  if (made.code() != Code::kExists) return made;
  TRY(io.Remove(path));
  return io.Open(path, OpenMode::kCreate);
}

Status WriteFileAtomically(FileIo& io, const std::string& path, ByteView data) {
  const std::string temporary = path + ".tmp";
  const auto write = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, CreateAnew(io, temporary));
    TRY(file->WriteAt(0, data));
    return file->Sync();
  };
  Status written = write();
  if (written.ok()) written = io.Rename(temporary, path);
  if (!written.ok()) {
    (void)io.Remove(temporary).ok();  // on a full disk it must not stay; the failure counts
    return written;
  }
  return io.SyncDirectory(ParentOf(path));
}

}  // namespace memoirfs
