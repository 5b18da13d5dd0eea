#include "tests/e2e/parity/clock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace memoirfs::parity {
namespace {

constexpr mode_t kMode = 0600;

}  // namespace

FineClock::FineClock(const std::string& directory)
    : fd_(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode)) {
  if (!fd_.valid()) throw std::system_error(errno, std::generic_category(), directory);
}

void FineClock::Advance() {
  struct stat facts = {};
  for (int i = 0; i < 2; ++i) {
    if (::fstat(fd_.get(), &facts) != 0 || ::fchmod(fd_.get(), kMode) != 0) {
      throw std::system_error(errno, std::generic_category(), "the reference's clock");
    }
  }
}

bool FineClock::Works() {
  constexpr int kTries = 100;
  struct stat before = {};
  struct stat after = {};
  for (int i = 0; i < kTries; ++i) {
    if (::fstat(fd_.get(), &before) != 0) return false;
    Advance();
    if (::fstat(fd_.get(), &after) != 0) return false;
    if (before.st_ctim.tv_nsec == after.st_ctim.tv_nsec) return false;
  }
  return true;
}

}  // namespace memoirfs::parity
