#include "fs/fuse/metrics.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

namespace memoirfs::fuse {
namespace {

using std::chrono::nanoseconds;

TEST_CASE("types that never came are not shown") {
  CHECK(nlohmann::json::parse(Metrics().ToJson()) == nlohmann::json::object());
}

TEST_CASE("counts, errors and the histogram add up") {
  Metrics metrics;
  for (int i = 0; i < 98; ++i) metrics.Record(Op::kLookup, 0, nanoseconds(1500));
  metrics.Record(Op::kLookup, EIO, nanoseconds(1024 * 1024));
  metrics.Record(Op::kLookup, 0, nanoseconds(0));
  const auto lookup = nlohmann::json::parse(metrics.ToJson()).at("lookup");
  CHECK(lookup.at("count") == 100);
  CHECK(lookup.at("errors") == 1);
  CHECK(lookup.at("total_ns") == 98 * 1500 + 1024 * 1024 + 1);
  CHECK(lookup.at("log2_ns") == nlohmann::json{{"0", 1}, {"10", 98}, {"20", 1}});
  CHECK(lookup.at("p50_ns") == 2048);
  CHECK(lookup.at("p99_ns") == 2 * 1024 * 1024);
}

TEST_CASE("what takes longer than the last bucket is in the last bucket") {
  Metrics metrics;
  metrics.Record(Op::kFsync, 0, nanoseconds(INT64_MAX / 2));
  const auto fsync = nlohmann::json::parse(metrics.ToJson()).at("fsync");
  CHECK(fsync.at("log2_ns") == nlohmann::json{{"40", 1}});
}

TEST_CASE("each type of request has a name of its own") {
  std::set<std::string_view> names;
  for (size_t op = 0; op < static_cast<size_t>(Op::kCount); ++op) {
    names.insert(OpName(static_cast<Op>(op)));
  }
  CHECK(names.size() == static_cast<size_t>(Op::kCount));
  CHECK(OpName(Op::kIoctl) == "ioctl");
}

}  // namespace
}  // namespace memoirfs::fuse
