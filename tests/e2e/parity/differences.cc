#include "tests/e2e/parity/differences.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tests/e2e/parity/constants.h"

namespace memoirfs::parity {
namespace {

int64_t Argument(const Step& step, size_t index) {
  return index < step.arguments.size() ? Value(step.arguments[index]) : 0;
}

bool MakesTemporaryFile(const Step& step) {
  return step.call == "open" && (Argument(step, 2) & O_TMPFILE) == O_TMPFILE;
}

bool MakesDevice(const Step& step) {
  if (step.call != "mknod") return false;
  const auto mode = static_cast<mode_t>(Argument(step, 1));
  return S_ISCHR(mode) || S_ISBLK(mode);
}

bool MakesWhiteout(const Step& step) {
  return step.call == "rename" && (Argument(step, 2) & RENAME_WHITEOUT) != 0;
}

bool MovesRanges(const Step& step) {
  constexpr int64_t kModes =
      FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE | FALLOC_FL_UNSHARE_RANGE;
  return step.call == "fallocate" && (Argument(step, 1) & kModes) != 0;
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || lead > 0xF4 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

bool ExceedsLargestFile(const Step& step) {
  constexpr int64_t kLargestFile = int64_t{1} << 52;
  static constexpr std::array<std::pair<std::string_view, size_t>, 4> kOffsets = {
      {{"truncate", 1}, {"ftruncate", 1}, {"pwrite", 2}, {"fallocate", 2}}};
  return std::any_of(kOffsets.begin(), kOffsets.end(), [&](const auto& place) {
    return step.call == place.first && Argument(step, place.second) > kLargestFile;
  });
}

bool NamesAreNotUtf8(const Step& step) {
  return std::any_of(step.arguments.begin(), step.arguments.end(),
                     [](const std::string& argument) { return !IsUtf8(Expand(argument)); });
}

bool SetsAttributeOutsideUser(const Step& step) {
  if (step.call.find("xattr") == std::string::npos || step.arguments.size() < 2) return false;
  const std::string& name = step.arguments[1];
  return name.rfind("security.", 0) == 0 || name.rfind("trusted.", 0) == 0 ||
         name.rfind("system.posix_acl", 0) == 0;
}

bool UsesAttributesByHandle(const Step& step) {
  return step.call.find("xattr") != std::string::npos && step.call.front() == 'f';
}

}  // namespace

const std::vector<KnownAnswer>& KnownAnswers() {
  static const std::vector<KnownAnswer> answers = {
      {"`O_TMPFILE`", "libfuse 3.14 knows no such request", "EOPNOTSUPP", MakesTemporaryFile},
      {"devices", "a memory holds none", "EPERM", MakesDevice},
      {"RENAME_WHITEOUT", "not served", "EINVAL", MakesWhiteout},
      {"collapse, insert and unshare of `fallocate`", "not served", "EOPNOTSUPP", MovesRanges},
      {"2^52 bytes (EFBIG)", "records count bytes in numbers of JSON", "EFBIG", ExceedsLargestFile},
      {"names that are not UTF-8", "records are text", "EILSEQ", NamesAreNotUtf8},
      {"`security.*`, `trusted.*` attributes", "only `user.*` is kept", "EOPNOTSUPP",
       SetsAttributeOutsideUser},
      {"attributes of a file that was removed before it was saved", "the store never had it",
       "ENOENT", UsesAttributesByHandle},
  };
  return answers;
}

const std::vector<NotCompared>& WhatIsNotCompared() {
  static const std::vector<NotCompared> list = {
      {"atime by reading", "the mount behaves as with noatime, and so must the reference"},
      {"`st_blocks` counts holes as data", "where holes lie is the file system's affair"},
      {"sizes of directories", "each file system counts them its own way"},
      {"times of fifos and sockets that are used",
       "the kernel passes their data on without the file system"},
      {"S_ISGID with group execute",
       "where a file's group can't execute it, the kernel does not ask a FUSE mount to clear it"},
      {"times of a file that is written through a mapping",
       "tmpfs leaves them alone, others set them when pages are written back"},
      {"`chown` that names no owner, by another user, of a set-uid file",
       "the kernel leaves the check to the file system, and libfuse 3.14 hides what is asked: it "
       "is ignored, not refused"},
      {"times of an empty file that is truncated by path to nothing",
       "tmpfs leaves them alone, ext4 and the mount set them"},
  };
  return list;
}

bool IsKnownAnswer(const Step& step, const std::string& answer) {
  return std::any_of(KnownAnswers().begin(), KnownAnswers().end(), [&](const KnownAnswer& known) {
    return answer == known.answer && known.applies(step);
  });
}

}  // namespace memoirfs::parity
