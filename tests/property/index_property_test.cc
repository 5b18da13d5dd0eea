// Random batches, pending rows, flushes and restarts of an index against two maps: what was
// applied, and what is pending above it.

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "store/meta/index.h"
#include "tests/support/sim_io.h"

namespace memoirfs::meta {
namespace {

using journal::Lsn;
using Rows = std::map<Bytes, Bytes>;

constexpr uint64_t kSeeds = 10;
constexpr int kSteps = 500;

class Run {
 public:
  explicit Run(uint64_t seed) : random_(seed) { Open(); }

  void Step() {
    switch (random_() % 12) {
      case 0:
      case 1:
        return Flush();
      case 2:
        return Checkpoint();
      case 3:
      case 4:
        return ApplyPending();
      case 5:
        return DropPending();
      case 6:
        return CheckGet();
      case 7:
        return CheckScan();
      case 8:
        return random_() % 10 == 0 ? Restart() : CheckScan();
      default:
        return Apply();
    }
  }

  void Restart() {
    index_.reset();
    if (random_() % 2 == 0) io_ = io_->AfterKill();
    Open();
    applied_ = durable_;
    unflushed_.clear();
    pending_.clear();
    CheckScan();
  }

 private:
  using Change = std::pair<Lsn, Batch>;

  void Open() {
    auto index = Index::Open(*io_, "index");
    INFO(index.status().ToString());
    REQUIRE(index.ok());
    index_ = std::move(*index);
  }

  // Few keys, so that batches meet, yet more than a scan takes at once; some are prefixes of
  // others.
  Bytes AnyKey() {
    Bytes key(1, static_cast<char>('a' + random_() % 3));
    if (random_() % 4 != 0) key += std::to_string(random_() % 150);
    return key;
  }

  Batch AnyBatch() {
    Batch batch;
    for (uint64_t count = 1 + random_() % 20; count > 0; --count) {
      if (random_() % 3 == 0) {
        batch.Delete(AnyKey());
      } else {
        batch.Put(AnyKey(), std::to_string(random_() % 1000));
      }
    }
    return batch;
  }

  static void ApplyTo(Rows& rows, const Batch& batch) {
    for (const auto& [key, value] : batch.ops()) {
      if (value) {
        rows[key] = *value;
      } else {
        rows.erase(key);
      }
    }
  }

  void Apply() {
    Batch batch = AnyBatch();
    lsn_.offset += 1 + random_() % 100;
    if (random_() % 20 == 0) lsn_ = {lsn_.journal + 1, 0};
    ApplyTo(applied_, batch);
    for (const auto& [key, value] : batch.ops()) pending_.erase(key);
    unflushed_.emplace_back(lsn_, batch);
    index_->Apply(std::move(batch), lsn_);
  }

  void ApplyPending() {
    const Batch batch = AnyBatch();
    for (const auto& [key, value] : batch.ops()) pending_[key] = value;
    index_->ApplyPending(batch);
  }

  void DropPending() {
    std::vector<Bytes> keys;
    for (int i = 0; i < 5; ++i) keys.push_back(AnyKey());
    for (const Bytes& key : keys) pending_.erase(key);
    index_->DropPending(keys);
  }

  // Some of what was applied becomes durable.
  Lsn AdvanceDurable() {
    const size_t count = unflushed_.empty() ? 0 : random_() % (unflushed_.size() + 1);
    const Lsn durable = count == 0 ? Lsn{} : unflushed_[count - 1].first;
    for (size_t i = 0; i < count; ++i) ApplyTo(durable_, unflushed_[i].second);
    unflushed_.erase(unflushed_.begin(), unflushed_.begin() + static_cast<int64_t>(count));
    return durable;
  }

  void Flush() { REQUIRE(index_->Flush(AdvanceDurable()).ok()); }

  void Checkpoint() {
    const Bytes value = std::to_string(random_());
    REQUIRE(index_->FlushAndSync(AdvanceDurable(), "M", value).ok());
    applied_["M"] = value;
    durable_["M"] = value;
  }

  Rows Visible() const {
    Rows rows = applied_;
    for (const auto& [key, value] : pending_) {
      if (value) {
        rows[key] = *value;
      } else {
        rows.erase(key);
      }
    }
    return rows;
  }

  void CheckGet() {
    const Bytes key = AnyKey();
    const Rows rows = Visible();
    const auto expected = rows.find(key);
    const auto got = index_->Get(key);
    REQUIRE(got.ok());
    CHECK(*got == (expected == rows.end() ? std::nullopt : std::optional<Bytes>(expected->second)));
  }

  void CheckScan() {
    const Bytes prefix = random_() % 3 == 0 ? Bytes() : AnyKey();
    const Bytes start = random_() % 2 == 0 ? Bytes() : AnyKey();
    std::vector<std::pair<Bytes, Bytes>> expected;
    for (const auto& [key, value] : Visible()) {
      if (key.substr(0, prefix.size()) == prefix && key >= start) expected.emplace_back(key, value);
    }
    std::vector<std::pair<Bytes, Bytes>> seen;
    REQUIRE(index_
                ->Scan(prefix, start,
                       [&](ByteView key, ByteView value) {
                         seen.emplace_back(key, value);
                         return true;
                       })
                .ok());
    CHECK(seen == expected);
  }

  std::mt19937_64 random_;
  std::unique_ptr<testing::SimIo> io_ = std::make_unique<testing::SimIo>();
  std::unique_ptr<Index> index_;
  Lsn lsn_{1, 0};
  Rows applied_;
  Rows durable_;  // as a restart would find it
  std::vector<Change> unflushed_;
  std::map<Bytes, std::optional<Bytes>> pending_;
};

}  // namespace

TEST_CASE("an index shows what was applied and pending, and keeps what was flushed") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Run run(seed);
    for (int step = 0; step < kSteps; ++step) {
      INFO("seed " << seed << ", step " << step);
      run.Step();
    }
    run.Restart();
  }
}

}  // namespace memoirfs::meta
