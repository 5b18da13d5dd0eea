#include "store/meta/index.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <thread>

#include "tests/support/sim_io.h"

namespace memoirfs::meta {
namespace {

using journal::Lsn;
using Rows = std::map<Bytes, Bytes>;

std::unique_ptr<Index> OpenIndex(FileIo& io) {
  auto index = Index::Open(io, "index");
  INFO(index.status().ToString());
  REQUIRE(index.ok());
  return std::move(*index);
}

Batch Puts(const Rows& rows) {
  Batch batch;
  for (const auto& [key, value] : rows) batch.Put(key, value);
  return batch;
}

Batch Deletes(const std::vector<Bytes>& keys) {
  Batch batch;
  for (const Bytes& key : keys) batch.Delete(key);
  return batch;
}

std::optional<Bytes> Get(const Index& index, ByteView key) {
  auto got = index.Get(key);
  REQUIRE(got.ok());
  return *got;
}

Rows Scan(const Index& index, ByteView prefix = {}, ByteView start = {}) {
  Rows rows;
  Bytes last;
  REQUIRE(index
              .Scan(prefix, start,
                    [&](ByteView key, ByteView value) {
                      CHECK((rows.empty() || key > last));
                      last = key;
                      rows[last] = value;
                      return true;
                    })
              .ok());
  return rows;
}

Bytes NumberedKey(int number) {
  Bytes digits = std::to_string(number);
  return "k" + Bytes(6 - digits.size(), '0') + digits;
}

// Bytes that do not compress, so that tables have their size.
Bytes Noise(size_t size, int seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  Bytes bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

TEST_CASE("an applied batch is visible at once, and written when it is durable") {
  testing::SimIo io;
  {
    auto index = OpenIndex(io);
    index->Apply(Puts({{"a", "1"}}), Lsn{1, 100});
    index->Apply(Puts({{"b", "2"}}), Lsn{1, 200});
    CHECK(Get(*index, "a") == "1");
    CHECK(Get(*index, "b") == "2");
    CHECK(Get(*index, "c") == std::nullopt);
    REQUIRE(index->Flush(Lsn{1, 199}).ok());
    CHECK(Scan(*index) == Rows{{"a", "1"}, {"b", "2"}});
  }
  CHECK(Scan(*OpenIndex(io)) == Rows{{"a", "1"}});
}

TEST_CASE("the newest of several values of a key is visible and is what stays") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->Apply(Puts({{"a", "1"}}), Lsn{1, 100});
  index->Apply(Puts({{"a", "2"}}), Lsn{1, 200});
  REQUIRE(index->Flush(Lsn{1, 100}).ok());
  CHECK(Get(*index, "a") == "2");
  index->Apply(Deletes({"a"}), Lsn{2, 0});
  CHECK(Get(*index, "a") == std::nullopt);
  CHECK(Scan(*index).empty());
  REQUIRE(index->Flush(Lsn{2, 0}).ok());
  CHECK(Get(*index, "a") == std::nullopt);
  CHECK(index->overlay_bytes() == 0);
  index.reset();
  CHECK(Scan(*OpenIndex(io)).empty());
}

TEST_CASE("puts and deletes of one key in one batch count in order") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  Batch batch;
  batch.Put("a", "1");
  batch.Delete("a");
  batch.Put("a", "2");
  batch.Put("b", "1");
  batch.Delete("b");
  index->Apply(batch, Lsn{1, 100});
  CHECK(Scan(*index) == Rows{{"a", "2"}});
  REQUIRE(index->Flush(Lsn{1, 100}).ok());
  CHECK(Scan(*index) == Rows{{"a", "2"}});
  CHECK(index->overlay_bytes() == 0);
}

TEST_CASE("pending rows are visible and never written") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->ApplyPending(Puts({{"a", "pending"}}));
  CHECK(Get(*index, "a") == "pending");
  REQUIRE(index->FlushAndSync(Lsn{9, 0}, "M", "row").ok());
  CHECK(Scan(*index) == Rows{{"M", "row"}, {"a", "pending"}});
  index.reset();
  CHECK(Scan(*OpenIndex(io)) == Rows{{"M", "row"}});
}

TEST_CASE("a pending row that is dropped shows what it had hidden") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->Apply(Puts({{"a", "old"}}), Lsn{1, 100});
  REQUIRE(index->Flush(Lsn{1, 100}).ok());

  SECTION("a row in LevelDB") {
    index->ApplyPending(Puts({{"a", "pending"}}));
    index->DropPending({"a"});
    CHECK(Get(*index, "a") == "old");
  }
  SECTION("a deletion that is not durable yet") {
    index->Apply(Deletes({"a"}), Lsn{1, 200});
    index->ApplyPending(Puts({{"a", "pending"}}));
    CHECK(Get(*index, "a") == "pending");
    index->DropPending({"a"});
    CHECK(Get(*index, "a") == std::nullopt);
  }
  SECTION("a deletion that became durable meanwhile") {
    index->Apply(Deletes({"a"}), Lsn{1, 200});
    index->ApplyPending(Puts({{"a", "pending"}}));
    REQUIRE(index->Flush(Lsn{1, 200}).ok());
    CHECK(Get(*index, "a") == "pending");
    index->DropPending({"a"});
    CHECK(Get(*index, "a") == std::nullopt);
  }
  REQUIRE(index->Flush(Lsn{1, 200}).ok());
  CHECK(index->overlay_bytes() == 0);
}

TEST_CASE("an applied row replaces a pending one, and outlives its being dropped") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->ApplyPending(Puts({{"a", "pending"}, {"b", "pending"}}));
  index->Apply(Puts({{"a", "applied"}}), Lsn{1, 100});
  CHECK(Get(*index, "a") == "applied");
  index->DropPending({"a", "b", "never there"});
  CHECK(Scan(*index) == Rows{{"a", "applied"}});
}

TEST_CASE("a scan merges LevelDB with what lies above it") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->Apply(Puts({{"p1", "a"}, {"p3", "b"}, {"p5", "c"}, {"q1", "d"}, {"o", "e"}}), Lsn{1, 1});
  REQUIRE(index->Flush(Lsn{1, 1}).ok());
  Batch above = Puts({{"p2", "new"}, {"p3", "changed"}});
  above.Delete("p5");
  index->Apply(above, Lsn{1, 2});
  index->ApplyPending(Puts({{"p6", "pending"}}));

  const Rows all = {{"p1", "a"}, {"p2", "new"}, {"p3", "changed"}, {"p6", "pending"}};
  CHECK(Scan(*index, "p") == all);
  CHECK(Scan(*index, "p", "p2") == Rows{std::next(all.begin()), all.end()});
  CHECK(Scan(*index, "p", "p21") == Rows{std::next(all.begin(), 2), all.end()});
  CHECK(Scan(*index, "p", "a") == all);
  CHECK(Scan(*index, "p", "q").empty());
  CHECK(Scan(*index, "r").empty());
}

TEST_CASE("a scan ends when its visitor has enough") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->Apply(Puts({{"a", "1"}, {"b", "2"}, {"c", "3"}}), Lsn{1, 1});
  REQUIRE(index->Flush(Lsn{1, 1}).ok());
  index->Apply(Puts({{"b", "2"}}), Lsn{1, 2});
  for (size_t enough : {1U, 2U, 3U}) {
    size_t seen = 0;
    REQUIRE(index->Scan("", "", [&](ByteView, ByteView) { return ++seen < enough; }).ok());
    CHECK(seen == enough);
  }
}

TEST_CASE("a scan misses nothing that is flushed while it runs") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  Rows all;
  for (int i = 0; i < 1000; ++i) {
    const Rows row = {{NumberedKey(i), std::to_string(i)}};
    all.insert(row.begin(), row.end());
    index->Apply(Puts(row), Lsn{1, static_cast<uint64_t>(i)});
  }
  Rows seen;
  REQUIRE(index
              ->Scan("k", "",
                     [&](ByteView key, ByteView value) {
                       // Each time a part of what comes moves from the overlay into LevelDB.
                       if (seen.size() % 50 == 0) {
                         CHECK(index->Flush(Lsn{1, seen.size() * 2}).ok());
                       }
                       seen[Bytes(key)] = value;
                       return true;
                     })
              .ok());
  CHECK(seen == all);
}

TEST_CASE("readers find a row all the time that it moves into LevelDB") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  constexpr int kRounds = 2000;
  constexpr int kKeys = 7;
  for (int i = 0; i < kKeys; ++i) index->Apply(Puts({{NumberedKey(i), "0"}}), Lsn{0, 0});
  std::atomic<bool> stop = false;
  std::atomic<int> missed = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        for (int i = 0; i < kKeys; ++i) {
          const auto got = index->Get(NumberedKey(i));
          if (!got.ok() || !*got) ++missed;
        }
        size_t seen = 0;
        const Status scanned = index->Scan("k", "", [&](ByteView, ByteView) { return ++seen; });
        if (!scanned.ok() || seen != kKeys) ++missed;
      }
    });
  }
  for (uint64_t round = 1; round <= kRounds; ++round) {
    index->Apply(Puts({{NumberedKey(static_cast<int>(round % kKeys)), std::to_string(round)}}),
                 Lsn{1, round});
    if (!index->Flush(Lsn{1, round - round % 3}).ok()) ++missed;
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(missed == 0);
}

TEST_CASE("a batch of several megabytes and many small ones are written whole") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  Rows all;
  for (int i = 0; i < 60; ++i)
    all[NumberedKey(i)] = Bytes(100'000, static_cast<char>('a' + i % 26));
  index->Apply(Puts(all), Lsn{1, 1});
  for (int i = 100; i < 3000; ++i) {
    all[NumberedKey(i)] = Bytes(1000, 'z');
    index->Apply(Puts({{NumberedKey(i), Bytes(1000, 'z')}}), Lsn{1, static_cast<uint64_t>(i)});
  }
  CHECK(index->overlay_bytes() > 8'000'000);
  REQUIRE(index->Flush(Lsn{1, 3000}).ok());
  CHECK(index->overlay_bytes() == 0);
  CHECK(Scan(*index) == all);
  index.reset();
  CHECK(Scan(*OpenIndex(io)) == all);
}

TEST_CASE("after a failed write the index writes no more, and goes on reading") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->Apply(Puts({{"a", "1"}}), Lsn{1, 100});
  REQUIRE(index->Flush(Lsn{1, 100}).ok());
  index->Apply(Puts({{"b", "2"}}), Lsn{1, 200});
  io.FailAt(1, EIO, testing::SimCall::kWrite);
  CHECK(index->Flush(Lsn{1, 200}).code() == Code::kIo);
  CHECK(index->Flush(Lsn{1, 200}).code() == Code::kIo);
  CHECK(index->FlushAndSync(Lsn{1, 200}, "M", "row").code() == Code::kIo);
  CHECK(Scan(*index) == Rows{{"a", "1"}, {"b", "2"}});
  index->Apply(Puts({{"c", "3"}}), Lsn{1, 300});
  CHECK(Get(*index, "c") == "3");
}

TEST_CASE("after a full disk the index is written again as soon as there is room") {
  const auto call = GENERATE(testing::SimCall::kWrite, testing::SimCall::kCreate);
  const int nth = GENERATE(range(1, 12));
  INFO("call " << static_cast<int>(call) << " number " << nth);
  testing::SimIo io;
  auto index = OpenIndex(io);
  Rows all{{"a", "1"}};
  index->Apply(Puts(all), Lsn{1, 1});
  REQUIRE(index->FlushAndSync(Lsn{1, 1}, "M", "1").ok());
  io.FailAt(static_cast<uint64_t>(nth), ENOSPC, call, testing::SimFault::kForever);
  // Enough that LevelDB fills and compacts its memory, so that it fails in its own thread too.
  Status status;
  uint64_t at = 1;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    const Rows rows{{NumberedKey(i), Noise(300'000, i)}};
    all.insert(rows.begin(), rows.end());
    index->Apply(Puts(rows), Lsn{1, ++at});
    status = index->Flush(Lsn{1, at});
  }
  REQUIRE(status.code() == Code::kNoSpace);
  CHECK(status.ToErrno() == ENOSPC);
  CHECK(index->FlushAndSync(Lsn{1, at}, "M", "2").code() == Code::kNoSpace);
  Rows visible = all;
  visible["M"] = "1";
  CHECK(Scan(*index) == visible);

  io.ClearFaults();
  index->Apply(Puts({{"b", "2"}}), Lsn{1, ++at});
  REQUIRE(index->FlushAndSync(Lsn{1, at}, "M", "3").ToErrno() == 0);
  CHECK(index->overlay_bytes() == 0);
  visible["b"] = "2";
  visible["M"] = "3";
  CHECK(Scan(*index) == visible);
  CHECK_FALSE(index->damaged());
  const auto after = io.AfterPowerCut(static_cast<uint64_t>(nth));
  CHECK(Scan(*OpenIndex(*after)) == visible);
}

TEST_CASE("an index without room to be opened anew leaves the disk alone") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->Apply(Puts({{"a", "1"}}), Lsn{1, 1});
  io.FailAt(1, ENOSPC, testing::SimCall::kWrite);
  REQUIRE(index->Flush(Lsn{1, 1}).code() == Code::kNoSpace);
  io.SetCapacity(1'000'000);
  const uint64_t changes = io.calls(testing::SimCall::kChange);
  CHECK(index->Flush(Lsn{1, 1}).code() == Code::kNoSpace);
  CHECK(io.calls(testing::SimCall::kChange) == changes);
  io.SetCapacity(100'000'000);
  CHECK(index->Flush(Lsn{1, 1}).ok());
}

TEST_CASE("a scan goes on through an index that is opened anew, and sees each row once") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  Rows all;
  for (int i = 0; i < 600; ++i) all[NumberedKey(i)] = Bytes(1000, 'x');
  index->Apply(Puts(all), Lsn{1, 1});
  REQUIRE(index->FlushAndSync(Lsn{1, 1}, "M", "1").ok());
  index->Apply(Puts({{NumberedKey(3), "new"}, {NumberedKey(599), "new"}}), Lsn{1, 2});
  all[NumberedKey(3)] = all[NumberedKey(599)] = "new";
  io.FailAt(1, ENOSPC, testing::SimCall::kWrite);
  REQUIRE(index->Flush(Lsn{1, 2}).code() == Code::kNoSpace);

  Rows seen;
  REQUIRE(index
              ->Scan("k", "k",
                     [&](ByteView key, ByteView value) {
                       CHECK(seen.emplace(key, value).second);
                       // Twice: the second one must not take files from the first reader.
                       if (seen.size() == 10) CHECK(index->Flush(Lsn{1, 2}).ok());
                       if (seen.size() == 20) {
                         index->Apply(Puts({{"z", "1"}}), Lsn{1, 3});
                         io.FailAt(1, ENOSPC, testing::SimCall::kWrite);
                         CHECK(index->Flush(Lsn{1, 3}).code() == Code::kNoSpace);
                         CHECK(index->Flush(Lsn{1, 3}).code() == Code::kNoSpace);
                       }
                       return true;
                     })
              .ok());
  CHECK(seen == all);
  CHECK(index->Flush(Lsn{1, 3}).ok());
  CHECK(Get(*index, "z") == "1");
}

TEST_CASE("a sync that found the disk full is final, and says so") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  io.FailAt(1, ENOSPC, testing::SimCall::kDataSync);
  CHECK(index->FlushAndSync(Lsn{1, 100}, "M", "row").code() == Code::kNoSpace);
  CHECK(index->FlushAndSync(Lsn{1, 100}, "M", "row").code() == Code::kNoSpace);
}

TEST_CASE("a quota that is used up is a lack of space to the callers of the index") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  index->Apply(Puts({{"a", "1"}}), Lsn{1, 1});
  io.FailAt(1, EDQUOT, testing::SimCall::kWrite);
  const Status status = index->Flush(Lsn{1, 1});
  CHECK(status.code() == Code::kNoSpace);
  CHECK(status.ToErrno() == EDQUOT);
  CHECK(index->Flush(Lsn{1, 1}).ok());
}

TEST_CASE("a failed sync of a checkpoint is told, and no later one succeeds") {
  testing::SimIo io;
  auto index = OpenIndex(io);
  io.FailAt(1, EIO, testing::SimCall::kDataSync);
  CHECK(index->FlushAndSync(Lsn{1, 100}, "M", "row").code() == Code::kIo);
  CHECK(index->FlushAndSync(Lsn{1, 100}, "M", "row").code() == Code::kIo);
}

TEST_CASE("an index that can't be made for want of space is not called corrupt") {
  testing::SimIo io;
  io.SetCapacity(10);
  CHECK(Index::Open(io, "index").status().code() == Code::kNoSpace);
}

TEST_CASE("an index whose file CURRENT is missing is damaged, not new") {
  testing::SimIo io;
  const auto write = [&io](const Bytes& key) {
    const auto index = OpenIndex(io);
    REQUIRE(index->FlushAndSync({}, key, "1").ok());
  };
  write("in a table");  // when it is opened again
  write("in the log");
  REQUIRE(io.Remove("index/CURRENT").ok());
  CHECK(Index::Open(io, "index").code() == Code::kCorrupt);
}

TEST_CASE("a directory is destroyed with the index only when nothing is in it") {
  testing::SimIo io;
  OpenIndex(io);
  REQUIRE(io.MakeDirectory("index/mine").ok());
  REQUIRE(io.MakeDirectory("index/mine/too").ok());
  CHECK(DestroyIndex(io, "index").code() == Code::kNotEmpty);
  REQUIRE(io.RemoveDirectory("index/mine/too").ok());
  CHECK(DestroyIndex(io, "index").ok());
  CHECK(io.Stat("index").code() == Code::kNotFound);
}

TEST_CASE("a destroyed index is gone, and a new one in its place is empty") {
  testing::SimIo io;
  {
    auto index = OpenIndex(io);
    REQUIRE(index->FlushAndSync(Lsn{1, 100}, "M", "row").ok());
  }
  REQUIRE(DestroyIndex(io, "index").ok());
  CHECK(io.List(".")->empty());
  CHECK(DestroyIndex(io, "index").ok());
  CHECK(Scan(*OpenIndex(io)).empty());
}

}  // namespace memoirfs::meta
