#pragma once

// How often each type of request came, how often it failed, and how long it took until its answer
// was ready. Lock-free: every worker counts on every request.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace memoirfs::fuse {

enum class Op : uint8_t {
  kLookup,
  kGetAttr,
  kSetAttr,
  kReadLink,
  kMakeNode,
  kMakeDirectory,
  kUnlink,
  kRemoveDirectory,
  kSymlink,
  kRename,
  kLink,
  kCreate,
  kOpen,
  kRead,
  kWrite,
  kFlush,
  kRelease,
  kFsync,
  kOpenDirectory,
  kReadDirectory,
  kReadDirectoryPlus,
  kFsyncDirectory,
  kGetXattr,
  kListXattr,
  kSetXattr,
  kRemoveXattr,
  kStatFs,
  kAllocate,
  kSeek,
  kCopyRange,
  kIoctl,
  kCount,
};

// As the protocol spells it: "lookup", "readdirplus".
std::string_view OpName(Op op);

class Metrics {
 public:
  void Record(Op op, int error, std::chrono::nanoseconds took);

  // {"lookup": {"count", "errors", "total_ns", "p50_ns", "p99_ns", "log2_ns": {"10": 3, …}}, …};
  // types that never came are left out. A percentile is the upper end of its power of two.
  std::string ToJson() const;

 private:
  // Bucket n counts what took at least 2^n and less than 2^(n+1) nanoseconds; the last one also
  // what took longer (2^40 ns are 18 minutes).
  static constexpr size_t kBuckets = 41;
  // One cache line boundary a type, so that readers and writers of files do not share lines.
  struct alignas(64) Counters {
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> errors{0};
    std::atomic<uint64_t> total_ns{0};
    std::array<std::atomic<uint64_t>, kBuckets> buckets{};
  };
  std::array<Counters, static_cast<size_t>(Op::kCount)> counters_;
};

}  // namespace memoirfs::fuse
