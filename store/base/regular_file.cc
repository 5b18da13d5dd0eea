#include "store/base/regular_file.h"

#include <sys/stat.h>

#include <string_view>
#include <utility>

namespace memoirfs {
namespace {

std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status NotRegular(mode_t mode, const std::string& shown) {
  return {Code::kCorrupt,
          shown + " is " + std::string(KindOf(mode)) + ", not a regular file: move it away"};
}

}  // namespace

Result<UniqueFd> OnlyRegular(UniqueFd file, const std::string& shown) {
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) {
    const int err = errno;
    return Status::FromErrno(err, "stat " + shown);
  }
  if (!S_ISREG(st.st_mode)) return NotRegular(st.st_mode, shown);
  return file;
}

Status FailureOfOpening(const Status& failure, int dir, const char* name,
                        const std::string& shown) {
  struct stat st {};
  if (failure.code() == Code::kNotFound || failure.code() == Code::kExists) return failure;
  if (::fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(st.st_mode)) return failure;
  return NotRegular(st.st_mode, shown);
}

Result<UniqueFd> OpenRegularFile(const std::string& path, int flags) {
  UniqueFd file(::open(path.c_str(), flags | kRegularFileFlags, 0600));
  if (file.valid()) return OnlyRegular(std::move(file), path);
  const int err = errno;
  return FailureOfOpening(Status::FromErrno(err, "open " + path), AT_FDCWD, path.c_str(), path);
}

}  // namespace memoirfs
