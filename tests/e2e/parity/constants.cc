#include "tests/e2e/parity/constants.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>

namespace memoirfs::parity {
namespace {

#define NAMED(constant) \
  { #constant, constant }

const std::map<std::string_view, int64_t>& Names() {
  static const std::map<std::string_view, int64_t> names = {NAMED(O_RDONLY),
                                                            NAMED(O_WRONLY),
                                                            NAMED(O_RDWR),
                                                            NAMED(O_CREAT),
                                                            NAMED(O_EXCL),
                                                            NAMED(O_TRUNC),
                                                            NAMED(O_APPEND),
                                                            NAMED(O_DIRECTORY),
                                                            NAMED(O_NOFOLLOW),
                                                            NAMED(O_PATH),
                                                            NAMED(O_TMPFILE),
                                                            NAMED(O_SYNC),
                                                            NAMED(O_DSYNC),
                                                            NAMED(O_NONBLOCK),
                                                            NAMED(O_NOATIME),
                                                            NAMED(O_DIRECT),
                                                            NAMED(O_CLOEXEC),
                                                            NAMED(RENAME_NOREPLACE),
                                                            NAMED(RENAME_EXCHANGE),
                                                            NAMED(RENAME_WHITEOUT),
                                                            NAMED(XATTR_CREATE),
                                                            NAMED(XATTR_REPLACE),
                                                            NAMED(AT_REMOVEDIR),
                                                            NAMED(AT_SYMLINK_FOLLOW),
                                                            NAMED(AT_SYMLINK_NOFOLLOW),
                                                            NAMED(AT_EMPTY_PATH),
                                                            NAMED(AT_EACCESS),
                                                            NAMED(FALLOC_FL_KEEP_SIZE),
                                                            NAMED(FALLOC_FL_PUNCH_HOLE),
                                                            NAMED(FALLOC_FL_ZERO_RANGE),
                                                            NAMED(FALLOC_FL_COLLAPSE_RANGE),
                                                            NAMED(FALLOC_FL_INSERT_RANGE),
                                                            NAMED(FALLOC_FL_UNSHARE_RANGE),
                                                            NAMED(SEEK_SET),
                                                            NAMED(SEEK_CUR),
                                                            NAMED(SEEK_END),
                                                            NAMED(SEEK_DATA),
                                                            NAMED(SEEK_HOLE),
                                                            NAMED(PROT_READ),
                                                            NAMED(PROT_WRITE),
                                                            NAMED(PROT_EXEC),
                                                            NAMED(MAP_SHARED),
                                                            NAMED(MAP_PRIVATE),
                                                            NAMED(MS_SYNC),
                                                            NAMED(MS_ASYNC),
                                                            NAMED(S_IFREG),
                                                            NAMED(S_IFIFO),
                                                            NAMED(S_IFSOCK),
                                                            NAMED(S_IFCHR),
                                                            NAMED(S_IFBLK),
                                                            NAMED(S_IFDIR),
                                                            NAMED(R_OK),
                                                            NAMED(W_OK),
                                                            NAMED(X_OK),
                                                            NAMED(F_OK),
                                                            NAMED(LOCK_SH),
                                                            NAMED(LOCK_EX),
                                                            NAMED(LOCK_UN),
                                                            NAMED(LOCK_NB)};
  return names;
}

#undef NAMED

int64_t Term(std::string_view term) {
  const auto found = Names().find(term);
  if (found != Names().end()) return found->second;
  size_t used = 0;
  const std::string text(term);
  const int64_t value = static_cast<int64_t>(std::stoll(text, &used, 0));
  if (used != text.size()) throw std::invalid_argument("not a number or a name: " + text);
  return value;
}

}  // namespace

int64_t Value(std::string_view expression) {
  int64_t value = 0;
  while (true) {
    const size_t bar = expression.find('|');
    value |= Term(expression.substr(0, bar));
    if (bar == std::string_view::npos) return value;
    expression.remove_prefix(bar + 1);
  }
}

}  // namespace memoirfs::parity
