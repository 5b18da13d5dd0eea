// A disk that fills up below an open store, and has room again later.

#include <catch2/catch.hpp>

#include "store/cas/chunk_tree.h"
#include "tests/unit/store/volume/sim_store.h"

namespace memoirfs::testing {
namespace {

constexpr uint64_t kPlenty = 1ULL << 30;

struct FullDisk : SimStore {
  FullDisk() {
    io.SetCapacity(kPlenty);
    Save("ada/before", "saved before");
    REQUIRE(store->Checkpoint().ok());
  }

  // From now on files may grow by `room` altogether, the spare space not counted.
  void LeaveRoom(uint64_t room) {
    const auto free_now = [this] {
      const auto space = io.Space();
      return space->available_blocks * space->block_size;
    };
    io.SetCapacity(kPlenty - free_now() + 1'000'000);
    REQUIRE(store->Checkpoint().ok());  // gives the spare space back
    REQUIRE(!io.Stat("SPARE").ok());
    io.SetCapacity(kPlenty);
    io.SetCapacity(kPlenty - free_now() + room);
  }

  // Files until one is refused; with what.
  Status Fill(const std::string& prefix) {
    for (int i = 0; i < 1000; ++i) {
      const std::string path = prefix + std::to_string(i);
      const Status saved = TrySave(path, path + Bytes(3000, '.'));
      if (!saved.ok()) return saved;
      const Status written = store->RunCommitterOnce();
      INFO(written.ToString());
      CHECK((written.ok() || written.code() == Code::kNoSpace));
    }
    return {};
  }
};

}  // namespace

TEST_CASE("a store whose disk was full goes on by itself when there is room") {
  // With more room other files meet the end of the disk first: segments, the index, a journal.
  const uint64_t room = GENERATE(0, 1'000, 5'000, 20'000, 50'000, 100'000, 400'000);
  INFO("room for " << room << " bytes");
  FullDisk disk;
  disk.LeaveRoom(room);
  CHECK(disk.Fill("ada/full").ToErrno() == ENOSPC);
  const Status checkpoint = disk.store->Checkpoint();
  CHECK((checkpoint.ok() || checkpoint.ToErrno() == ENOSPC));
  CHECK(disk.store->Sync().ok());
  CHECK(disk.store.Unlink("ada/full1").ok());

  disk.io.SetCapacity(kPlenty);
  disk.Save("ada/after", "room again");
  CHECK(disk.store->RunCommitterOnce().ToString() == "ok");
  CHECK(disk.store->Checkpoint().ToString() == "ok");
  CHECK(disk.store->Facts().overlay_bytes < 1000);
  CHECK_FALSE(disk.store->Facts().read_only);
  disk.CheckVerifies();
  const Tree tree = disk.store.ReadTree().value();
  CHECK(tree.count("ada/after") == 1);
  CHECK(tree.count("ada/full1") == 0);
  disk.store.Close();
  REQUIRE(disk.store.Open().ok());
  CHECK(FirstDifference(tree, disk.store.ReadTree().value()).empty());
}

// Recording them wants room: where there is none they wait, and are there all the same.
TEST_CASE("files that were created and not recorded survive a crash on a full disk") {
  const uint64_t room = GENERATE(0, 2'000, 10'000, 40'000, 100'000, 300'000);
  INFO("room for " << room << " bytes");
  FullDisk disk;
  for (int i = 0; i < 40; ++i) {
    const std::string path = "ada/pending" + std::to_string(i);
    REQUIRE(disk.store.Create(path).ok());
    if (i % 2 == 0) REQUIRE(disk.store.NoteTruncation(path, 10 * i).ok());
  }
  const Tree tree = disk.store.ReadTree().value();
  REQUIRE(disk.store->Sync().ok());
  const auto left = disk.io.AfterKill();
  (void)left->Remove("SPARE").ok();
  left->SetCapacity(kPlenty);
  const SpaceFacts space = left->Space().value();
  left->SetCapacity(kPlenty - space.available_blocks * space.block_size + room);
  for (int opening = 0; opening < 2; ++opening) {
    LivingStore again(*left);
    const Status opened = again.Open();
    // With next to nothing there is no room for a journal; then the store says so.
    if (!opened.ok()) {
      CHECK(opened.ToErrno() == ENOSPC);
      CHECK(room < 100'000);
    } else {
      CHECK(again.ReadTree()->size() == tree.size());
    }
  }
  left->SetCapacity(kPlenty);
  LivingStore again(*left);
  REQUIRE(again.Open().ToString() == "ok");
  CHECK(again.ReadTree()->size() == tree.size());
  for (const auto& [path, description] : tree) CHECK(again.ReadTree()->count(path) == 1);
}

// A failure once, at each call of a session in turn: whoever repeats the call that failed gets a
// finished session whose chunks are durable, and no chunk was lost on the way.
TEST_CASE("a session of chunks goes on after any failure, with all that it had") {
  const int err = GENERATE(ENOSPC, EIO);
  const SimCall call = GENERATE(SimCall::kWrite, SimCall::kCreate, SimCall::kDataSync,
                                SimCall::kSync, SimCall::kRename, SimCall::kSyncDirectory);
  const uint64_t nth = GENERATE(1, 2, 4);
  INFO("error " << err << ", call " << static_cast<int>(call) << " number " << nth);
  FullDisk disk;
  auto session = disk.store->StartChunkSession().value();
  disk.io.FailAt(nth, err, call);
  std::vector<Digest> digests;
  // A sync before the end comes only with more than what may be unsynced.
  const int chunks = call == SimCall::kDataSync ? 132 : 6;
  for (int i = 0; i < chunks; ++i) {
    const auto bytes = std::make_shared<const Bytes>(Bytes(cas::kChunkSize, static_cast<char>(i)));
    digests.push_back(Sha256::Of(*bytes));
    if (!session->Store(digests.back(), bytes).ok()) {
      REQUIRE(session->Store(digests.back(), bytes).ToString() == "ok");
    }
  }
  if (!session->Finish().ok()) REQUIRE(session->Finish().ToString() == "ok");
  disk.io.ClearFaults();
  session.reset();
  REQUIRE(disk.store->Checkpoint().ok());
  CHECK(disk.io.List("staging")->empty());

  const auto after = disk.io.AfterPowerCut(nth);
  LivingStore left(*after);
  REQUIRE(left.Open().ok());
  for (const Digest& digest : digests) CHECK(left->objects().Get(digest).ok());
}

TEST_CASE("a session of chunks says that the disk is full as long as it is") {
  FullDisk disk;
  auto session = disk.store->StartChunkSession().value();
  const auto bytes = std::make_shared<const Bytes>(Bytes(cas::kChunkSize, 'x'));
  REQUIRE(session->Store(Sha256::Of(*bytes), bytes).ok());
  disk.io.FailAt(1, EIO, SimCall::kSync);
  CHECK(session->Finish().ToErrno() == EIO);
  disk.io.SetCapacity(1);
  CHECK(session->Finish().ToErrno() == ENOSPC);
  CHECK(disk.store->objects().Get(Sha256::Of(*bytes)).ok());
  disk.io.SetCapacity(kPlenty);
  CHECK(session->Finish().ok());
}

}  // namespace memoirfs::testing
