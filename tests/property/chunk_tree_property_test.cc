// Random operations on a chunk tree against a map of chunks.

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "store/cas/chunk_tree.h"
#include "tests/support/stored_objects.h"

namespace memoirfs::cas {
namespace {

using Model = std::map<uint64_t, Digest>;

constexpr uint64_t kSeeds = 12;
constexpr int kSteps = 400;

class Run {
 public:
  explicit Run(uint64_t seed) : random_(seed) {}

  void Step() {
    switch (random_() % 10) {
      case 0:
        return Truncate();
      case 1:
      case 2:
        return Clear();
      case 3:
        return CheckNext();
      case 4:
        return CheckChunk();
      case 5:
        return SealAndCompare();
      case 6:
        return Reopen();
      default:
        return Set();
    }
  }

  void SealAndCompare() {
    const uint64_t size = MinSize() + random_() % (3 * kChunkSize);
    last_ = Seal(tree_, size);
    CHECK(last_ == Seal(Fresh(), size));
    CHECK(ChunksOf(last_) == model_);
  }

 private:
  // Often where nodes begin and end, now and then far away.
  uint64_t AnyIndex() {
    static constexpr uint64_t kEdges[] = {0, 1023, 1024, 2048, 1048575, 1048576, 1ULL << 30};
    const uint64_t near = random_() % 6;
    if (random_() % 20 == 0) return random_() % (1ULL << 40);
    return kEdges[random_() % std::size(kEdges)] + near;
  }

  // An index that is often one that the tree has.
  uint64_t LikelyIndex() {
    if (model_.empty() || random_() % 3 == 0) return AnyIndex();
    return std::next(model_.begin(), static_cast<int64_t>(random_() % model_.size()))->first;
  }

  void Set() {
    const uint64_t index = AnyIndex();
    const Digest digest = Sha256::Of(std::to_string(random_() % 8));
    REQUIRE(tree_.SetChunk(index, digest).ok());
    model_[index] = digest;
  }

  void Clear() {
    const uint64_t index = LikelyIndex();
    REQUIRE(tree_.SetChunk(index, std::nullopt).ok());
    model_.erase(index);
  }

  void Truncate() {
    const uint64_t count = LikelyIndex();
    REQUIRE(tree_.Truncate(count).ok());
    model_.erase(model_.lower_bound(count), model_.end());
  }

  void CheckChunk() {
    const uint64_t index = LikelyIndex();
    const auto found = tree_.Chunk(index);
    REQUIRE(found.ok());
    const auto expected = model_.find(index);
    CHECK(*found ==
          (expected == model_.end() ? std::nullopt : std::optional<Digest>(expected->second)));
  }

  void CheckNext() {
    const uint64_t from = LikelyIndex();
    const uint64_t limit = LikelyIndex() + random_() % 3;
    const auto data = model_.lower_bound(from);
    uint64_t hole = from;
    for (auto at = data; at != model_.end() && at->first == hole; ++at) ++hole;
    const auto below_limit = [&](uint64_t index) {
      return index < limit ? std::optional<uint64_t>(index) : std::nullopt;
    };
    INFO("from " << from << " to " << limit);
    CHECK(tree_.NextChunk(from, limit, false).value() ==
          (data == model_.end() ? std::nullopt : below_limit(data->first)));
    CHECK(tree_.NextChunk(from, limit, true).value() == below_limit(hole));
  }

  void Reopen() {
    SealAndCompare();
    tree_ = ChunkTree(store_.objects(), last_);
  }

  uint64_t MinSize() const {
    const uint64_t chunks = model_.empty() ? 1 : model_.rbegin()->first + 1;
    return std::max<uint64_t>(chunks * kChunkSize, kChunkSize + 1);
  }

  ChunkTree Fresh() {
    ChunkTree fresh(store_.objects());
    for (const auto& [index, digest] : model_) REQUIRE(fresh.SetChunk(index, digest).ok());
    return fresh;
  }

  ContentId Seal(ChunkTree&& tree, uint64_t size) { return Seal(tree, size); }
  ContentId Seal(ChunkTree& tree, uint64_t size) {
    const auto id = tree.Seal(size, [this](const Digest& digest, Buffer bytes) {
      store_.objects().Remember(digest, std::move(bytes));
      return Status();
    });
    REQUIRE(id.ok());
    return *id;
  }

  Model ChunksOf(const ContentId& id) {
    Model chunks;
    ChunkTree tree(store_.objects(), id);
    const uint64_t count = ChunkCount(id.size);
    for (auto at = tree.NextChunk(0, count, false); at.ok() && *at;
         at = tree.NextChunk(**at + 1, count, false)) {
      chunks[**at] = tree.Chunk(**at).value().value();
    }
    return chunks;
  }

  std::mt19937_64 random_;
  testing::StoredObjects store_{256U << 20};
  ChunkTree tree_{store_.objects()};
  ContentId last_;
  Model model_;
};

}  // namespace

TEST_CASE("a chunk tree behaves as a map of chunks, and its id as a function of it") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Run run(seed);
    for (int step = 0; step < kSteps; ++step) {
      INFO("seed " << seed << ", step " << step);
      run.Step();
    }
    run.SealAndCompare();
  }
}

}  // namespace memoirfs::cas
