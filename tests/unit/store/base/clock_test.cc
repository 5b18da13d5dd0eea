#include "store/base/clock.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>

using memoirfs::Clock;
using memoirfs::Code;
using memoirfs::FormatRfc3339;
using memoirfs::Nanos;
using memoirfs::ParseRfc3339;

TEST_CASE("times are written in UTC with nine digits") {
  CHECK(FormatRfc3339(0) == "1970-01-01T00:00:00.000000000Z");
  CHECK(FormatRfc3339(-1) == "1969-12-31T23:59:59.999999999Z");
  CHECK(FormatRfc3339(951'782'400'123'456'789) == "2000-02-29T00:00:00.123456789Z");
}

TEST_CASE("what was written is read back") {
  std::mt19937_64 random(1);  // NOLINT: the same each time
  std::uniform_int_distribution<Nanos> any(std::numeric_limits<Nanos>::min() + 1'000'000'000,
                                           std::numeric_limits<Nanos>::max());
  for (int i = 0; i < 1000; ++i) {
    const Nanos time = any(random);
    INFO(time);
    CHECK(ParseRfc3339(FormatRfc3339(time)).value() == time);
  }
}

TEST_CASE("other forms of RFC 3339 are read too") {
  CHECK(ParseRfc3339("1970-01-01T00:00:01Z").value() == 1'000'000'000);
  CHECK(ParseRfc3339("1970-01-01T00:00:01.5Z").value() == 1'500'000'000);
  CHECK(ParseRfc3339("1970-01-01T09:00:00+09:00").value() == 0);
  CHECK(ParseRfc3339("1969-12-31T23:30:00-00:30").value() == 0);
}

TEST_CASE("what is not a time is refused") {
  for (const char* text :
       {"", "1970", "1970-01-01", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z",
        "1970-02-30T00:00:00Z", "1900-02-29T00:00:00Z", "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00.1234567891Z",
        "1970-01-01T00:00:00Zx", "1970-01-01 00:00:00Z", "1970-01-01T00:00:00+9:00",
        "1970-01-01T00:00:00+24:00", "\xff"}) {
    INFO(text);
    CHECK(ParseRfc3339(text).code() == Code::kInvalidArgument);
  }
  CHECK(ParseRfc3339("9999-01-01T00:00:00Z").code() == Code::kRange);
  CHECK(ParseRfc3339("0001-01-01T00:00:00Z").code() == Code::kRange);
}

TEST_CASE("the real clock goes forward") {
  const Nanos before = Clock::Real().Monotonic();
  CHECK(Clock::Real().Now() > 1'700'000'000'000'000'000);
  CHECK(Clock::Real().Monotonic() >= before);
}
