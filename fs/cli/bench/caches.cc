#include "fs/cli/bench/caches.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "fs/cli/bench/workspace.h"

namespace memoirfs::bench {
namespace {

// The kernel frees pages of a file only when they are clean: hence the fsync.
Status AdviseFile(const std::string& path) {
  ASSIGN_OR_RETURN(const Fd fd, Open(path, O_RDONLY));
  if (::fsync(fd.get()) != 0) return Status::FromErrno(errno, "fsync " + path);
  const int err = ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (err != 0) return Status::FromErrno(err, "posix_fadvise " + path);
  return {};
}

Status AdviseFolder(const std::string& folder) {
  std::error_code error;
  for (auto entry = std::filesystem::recursive_directory_iterator(folder, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file(error)) TRY(AdviseFile(entry->path()));
  }
  if (error) return Status::FromErrno(error.value(), "list " + folder);
  return {};
}

}  // namespace

Result<Coldness> DropCaches(const std::string& folder) {
  TRY(AdviseFolder(folder));
  ::sync();
  const Result<Fd> control = Open("/proc/sys/vm/drop_caches", O_WRONLY);
  if (!control.ok() || ::write(control->get(), "3", 1) != 1) return Coldness::kAdviceOnly;
  return Coldness::kCold;
}

}  // namespace memoirfs::bench
