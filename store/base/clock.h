#pragma once

// Time, injected so that tests own it.

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/status.h"
#include "store/base/types.h"

namespace memoirfs {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos Now() const = 0;        // CLOCK_REALTIME
  virtual Nanos Monotonic() const = 0;  // CLOCK_MONOTONIC; only differences mean something

  static Clock& Real();
};

// "2026-01-31T12:34:56.123456789Z" (RFC 3339, UTC, nine digits). Years 0 to 9999.
std::string FormatRfc3339(Nanos time);

// The reverse, for any RFC 3339 time: up to nine digits of a fraction, "Z" or an offset.
// kInvalidArgument; kRange for what Nanos cannot hold (before 1678, after 2261).
Result<Nanos> ParseRfc3339(std::string_view text);

}  // namespace memoirfs
