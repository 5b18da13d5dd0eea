#include "store/base/clock.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "store/base/file_name.h"

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

// Takes pieces off the front of a text. After the first piece that is not there, ok() is false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int Digits(size_t count) {
    int value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!AtDigit()) ok_ = false;
      if (!ok_) return 0;
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }
  void Literal(char expected) {
    if (!Accept(expected)) ok_ = false;
  }
  bool Accept(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool AtDigit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  void Refuse() { ok_ = false; }
  bool ok() const { return ok_; }
  bool Done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

int64_t ScanSecondsOfDay(Scanner& in) {
  const int hour = in.Digits(2);
  in.Literal(':');
  const int minute = in.Digits(2);
  in.Literal(':');
  const int second = in.Digits(2);
  if (hour > 23 || minute > 59 || second > 59) in.Refuse();
  return hour * 3600 + minute * 60 + second;
}

int64_t ScanFraction(Scanner& in) {
  if (!in.Accept('.')) return 0;
  if (!in.AtDigit()) in.Refuse();
  int64_t unit = kNanosPerSecond;
  int64_t nanos = 0;
  while (in.AtDigit() && unit > 1) {
    unit /= 10;
    nanos += in.Digits(1) * unit;
  }
  return nanos;
}

int64_t ScanOffsetSeconds(Scanner& in) {
  if (in.Accept('Z')) return 0;
  const int sign = in.Accept('-') ? -1 : 1;
  if (sign > 0) in.Literal('+');
  const int hour = in.Digits(2);
  in.Literal(':');
  const int minute = in.Digits(2);
  if (hour > 23 || minute > 59) in.Refuse();
  return sign * (hour * 3600 + minute * 60);
}

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

Result<Nanos> ParseRfc3339(std::string_view text) {
  namespace chrono = std::chrono;
  Scanner in(text);
  const int year = in.Digits(4);
  in.Literal('-');
  const int month = in.Digits(2);
  in.Literal('-');
  const chrono::year_month_day date{chrono::year(year), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(in.Digits(2)))};
  in.Literal('T');
  int64_t seconds = ScanSecondsOfDay(in);
  const int64_t nanos = ScanFraction(in);
  seconds -= ScanOffsetSeconds(in);
  if (!in.Done() || !date.ok()) {
    return Status(Code::kInvalidArgument,
                  "not a time like 2026-01-31T12:34:56Z: '" + EscapeInvalidUtf8(text) + "'");
  }
  seconds += chrono::sys_days(date).time_since_epoch().count() * int64_t{86400};
  Nanos time = 0;
  if (__builtin_mul_overflow(seconds, kNanosPerSecond, &time) ||
      __builtin_add_overflow(time, nanos, &time)) {
    return Status(Code::kRange, "a time beyond the years 1678 to 2261: " + std::string(text));
  }
  return time;
}

}  // namespace memoirfs
