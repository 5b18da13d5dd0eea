#include "fs/fuse/metrics.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

namespace memoirfs::fuse {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Op::kCount)> kNames = {
    "lookup",   "getattr",         "setattr",   "readlink", "mknod",       "mkdir",   "unlink",
    "rmdir",    "symlink",         "rename",    "link",     "create",      "open",    "read",
    "write",    "flush",           "release",   "fsync",    "opendir",     "readdir", "readdirplus",
    "fsyncdir", "getxattr",        "listxattr", "setxattr", "removexattr", "statfs",  "fallocate",
    "lseek",    "copy_file_range", "ioctl",
};
static_assert(!kNames.back().empty(), "each Op has a name");

// The upper end of the bucket that the given share of all requests does not exceed.
uint64_t Percentile(const std::vector<uint64_t>& buckets, double share) {
  uint64_t total = 0;
  for (const uint64_t n : buckets) total += n;
  const auto wanted = static_cast<uint64_t>(static_cast<double>(total) * share);
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen > wanted || seen == total) return uint64_t{2} << i;
  }
  return 0;
}

}  // namespace

std::string_view OpName(Op op) { return kNames.at(static_cast<size_t>(op)); }

void Metrics::Record(Op op, int error, std::chrono::nanoseconds took) {
  Counters& counters = counters_[static_cast<size_t>(op)];
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(took.count(), 1));
  const auto bucket = std::min<size_t>(std::bit_width(ns) - 1, kBuckets - 1);
  counters.count.fetch_add(1, std::memory_order_relaxed);
  if (error != 0) counters.errors.fetch_add(1, std::memory_order_relaxed);
  counters.total_ns.fetch_add(ns, std::memory_order_relaxed);
  counters.buckets[bucket].fetch_add(1, std::memory_order_relaxed);
}

std::string Metrics::ToJson() const {
  nlohmann::json all = nlohmann::json::object();
  for (size_t op = 0; op < counters_.size(); ++op) {
    const Counters& counters = counters_[op];
    const uint64_t count = counters.count.load(std::memory_order_relaxed);
    if (count == 0) continue;
    std::vector<uint64_t> buckets(kBuckets);
    nlohmann::json histogram = nlohmann::json::object();
    for (size_t i = 0; i < kBuckets; ++i) {
      buckets[i] = counters.buckets[i].load(std::memory_order_relaxed);
      if (buckets[i] != 0) histogram[std::to_string(i)] = buckets[i];
    }
    all[std::string(kNames[op])] = {
        {"count", count},
        {"errors", counters.errors.load(std::memory_order_relaxed)},
        {"total_ns", counters.total_ns.load(std::memory_order_relaxed)},
        {"p50_ns", Percentile(buckets, 0.50)},
        {"p99_ns", Percentile(buckets, 0.99)},
        {"log2_ns", histogram},
    };
  }
  return all.dump();
}

}  // namespace memoirfs::fuse
