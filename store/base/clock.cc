#include "store/base/clock.h"

#include <fmt/format.h>

#include <ctime>

namespace memoirfs {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

Nanos Read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return ts.tv_sec * kNanosPerSecond + ts.tv_nsec;
}

class RealClock final : public Clock {
 public:
  Nanos Now() const override { return Read(CLOCK_REALTIME); }
  Nanos Monotonic() const override { return Read(CLOCK_MONOTONIC); }
};

}  // namespace

Clock& Clock::Real() {
  static RealClock clock;
  return clock;
}

std::string FormatRfc3339(Nanos time) {
  int64_t seconds = time / kNanosPerSecond;
  int64_t nanos = time % kNanosPerSecond;
  if (nanos < 0) {
    nanos += kNanosPerSecond;
    --seconds;
  }
  const std::time_t whole = seconds;
  std::tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     nanos);
}

}  // namespace memoirfs
