// Chains' files, packs and the index, changed by somebody else while nobody has the store open: it
// is found by a verification that writes nothing, told by the next opening, and nothing is lost.

#include <functional>

#include "store/base/overlay_io.h"
#include "store/chain/segment.h"
#include "tests/unit/store/volume/sim_store.h"

namespace memoirfs::testing {
namespace {

constexpr char kChain[] = "chains/1/000001.jsonl";

void Check(const Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

Bytes Read(FileIo& io, const std::string& path) { return ReadWholeFile(io, path).value(); }
void Write(FileIo& io, const std::string& path, ByteView bytes) {
  Check(WriteFileAtomically(io, path, bytes));
}

// Removes what lies in a directory.
void Empty(FileIo& io, const std::string& directory) {
  const auto names = io.List(directory);
  for (const std::string& name : *names) {
    Check(io.Remove(directory + "/" + name));
  }
}

// Of a copy that takes the writes: the store stays as it is.
std::vector<volume::VerifyProblem> FindProblems(SimIo& io) {
  const auto overlay = MakeOverlayIo(io);
  volume::VolumeOptions options = CrashOptions();
  options.read_only = true;
  const auto opened = volume::Volume::Open(*overlay, Clock::Real(), options);
  Check(opened.status());
  const auto report = volume::VerifyVolume(**opened, {}, {});
  Check(report.status());
  return report->problems;
}

bool Tells(const std::vector<volume::VerifyProblem>& problems, const std::string& what,
           const std::string& where) {
  for (const volume::VerifyProblem& problem : problems) {
    if (problem.what == what && problem.where.find(where) != std::string::npos) return true;
    UNSCOPED_INFO(problem.what << ", " << problem.where << ": expected " << problem.expected
                               << ", found " << problem.found);
  }
  return false;
}

std::string LastLine(const Bytes& chain) {
  const size_t before = chain.rfind('\n', chain.size() - 2);
  return chain.substr(before + 1, chain.size() - before - 2);
}

Bytes WithoutLastLine(const Bytes& chain) {
  return chain.substr(0, chain.rfind('\n', chain.size() - 2) + 1);
}

// What a `recover` record of ada's chain says.
std::string Told(SimStore& store) {
  std::string told;
  Check(store.store->ForEachRecord(store.Ada(), Seq(1),
                                   [&](const chain::ParsedRecord& record, std::string_view) {
                                     if (record.change.op == chain::Op::kRecover) {
                                       told += record.change.detail;
                                     }
                                     return Status();
                                   }));
  return told;
}

// A store of ada's that was closed, with three files, all of them checkpointed.
struct Closed : SimStore {
  Closed() {
    for (const char* name : {"one", "two", "three"}) Save(std::string("ada/") + name, name);
    store.Close();
    REQUIRE(FindProblems(io).empty());
  }

  void CheckFiles() {
    const Tree tree = store.ReadTree().value();
    for (const char* name : {"ada/one", "ada/two", "ada/three"}) CHECK(tree.count(name) == 1);
  }
};

// A record that continues ada's chain, as whoever can read it can make one.
std::string Forge(SimIo& io, const std::string& store_id) {
  const auto last = chain::ParseRecord(LastLine(Read(io, kChain)));
  chain::Change change;
  change.op = chain::Op::kMkdir;
  change.ino = InodeId(900);
  change.parent = kRootInode;
  change.name = change.path = "forged";
  change.cookie = Cookie(901);
  change.attributes = Attributes{.mode = S_IFDIR | 0755};
  const chain::RecordContext context{StreamId(1), store_id, "ada", "session"};
  return chain::SealRecord(context, {last->seq, last->hash, last->ts}, change, last->ts)->line;
}

std::string StoreIdOf(SimIo& io) {
  const std::string subject = chain::ParseRecord(LastLine(Read(io, kChain)))->subject;
  return subject.substr(9, subject.size() - 9 - 4);  // memoirfs.<id>.ada
}

}  // namespace

TEST_CASE("well-formed records behind the end of a chain are found, shown to nobody, and kept") {
  Closed closed;
  const std::string forged = Forge(closed.io, StoreIdOf(closed.io));
  const Bytes tampered = Read(closed.io, kChain) + forged + "\n";
  Write(closed.io, kChain, tampered);
  CHECK(Tells(FindProblems(closed.io), "record", "chains/1"));

  Check(closed.store.Open());
  CHECK(closed.store.ReadTree()->count("ada/forged") == 0);
  CHECK(Told(closed).find("quarantine/chain-1-") != std::string::npos);
  closed.CheckVerifies();
  const auto kept = closed.io.List("quarantine").value();
  REQUIRE(kept.size() == 1);
  CHECK(Read(closed.io, "quarantine/" + kept[0]) == tampered);
  closed.store.Close();
  CHECK(FindProblems(closed.io).empty());
}

TEST_CASE("the records of a live store end where its head is, whatever the file says") {
  SimStore store;
  store.Save("ada/file", "text");
  Check(store.store->RunCommitterOnce());
  Write(store.io, kChain, Read(store.io, kChain) + Forge(store.io, StoreIdOf(store.io)) + "\n");
  uint64_t shown = 0;
  const Status read =
      store.store->ForEachRecord(store.Ada(), Seq(1), [&](const auto&, std::string_view) {
        ++shown;
        return Status();
      });
  CHECK(read.code() == Code::kCorrupt);
  CHECK(shown == store.store->FindAgent("ada")->head.seq.value);
  const auto report = volume::VerifyVolume(*store.store, {}, {});
  CHECK(Tells(report->problems, "record", "chains/1"));
}

TEST_CASE("bytes behind a chain's last line are found") {
  Closed closed;
  Write(closed.io, kChain, Read(closed.io, kChain) + "{\"unfinished\":");
  CHECK(Tells(FindProblems(closed.io), "chain", "chains/1"));
  Check(closed.store.Open());
  CHECK(Told(closed).find("14 bytes") != std::string::npos);
  closed.CheckVerifies();
}

// Recovery fills the chain from the packs before anybody compares: what it did must be told.
TEST_CASE("a chain without its end is found, with the index in place and without") {
  Closed closed;
  Write(closed.io, kChain, WithoutLastLine(Read(closed.io, kChain)));
  SECTION("the index in place") {}
  SECTION("a rebuild waits") { Write(closed.io, "REBUILD", {}); }
  SECTION("no index") { Empty(closed.io, "index"); }
  CHECK(Tells(FindProblems(closed.io), "chain", "chains/1"));
  Check(closed.store.Open());
  closed.CheckFiles();
  CHECK(Told(closed).find("chains/1") != std::string::npos);
  closed.CheckVerifies();
  closed.store.Close();
  CHECK(FindProblems(closed.io).empty());
}

TEST_CASE("a store without chains and index is found, and is whole again") {
  Closed closed;
  Empty(closed.io, "index");
  Empty(closed.io, "chains/1");
  Check(closed.io.RemoveDirectory("chains/1"));
  CHECK(Tells(FindProblems(closed.io), "chain", "chains/1"));
  Check(closed.store.Open());
  closed.CheckFiles();
  closed.CheckVerifies();
}

TEST_CASE("another last record in a chain is found, with the index in place and without") {
  Closed closed;
  const Bytes chain = Read(closed.io, kChain);
  const Bytes shorter = WithoutLastLine(chain);
  Write(closed.io, kChain, shorter);
  const std::string forged = Forge(closed.io, StoreIdOf(closed.io));
  Write(closed.io, kChain, shorter + forged + "\n");
  const bool without_index = GENERATE(false, true);
  if (without_index) Empty(closed.io, "index");
  CHECK(Tells(FindProblems(closed.io), without_index ? "chain" : "record", "chains/1"));
  if (!without_index) return;
  Check(closed.store.Open());
  closed.CheckFiles();
  CHECK(closed.store.ReadTree()->count("ada/forged") == 0);
  closed.CheckVerifies();
}

TEST_CASE("a chain that belongs to no agent is found") {
  Closed closed;
  const std::string name = GENERATE("7", "01", "notes");
  Check(closed.io.MakeDirectory("chains/" + name));
  CHECK(Tells(FindProblems(closed.io), "chain", "chains/" + name));
}

// Two stores may number their streams alike.
TEST_CASE("a record that was written for another store is not taken") {
  Closed closed;
  Write(closed.io, kChain,
        Read(closed.io, kChain) + Forge(closed.io, "00000000-0000-4000-8000-000000000000") + "\n");
  Write(closed.io, "REBUILD", {});
  Check(closed.store.Open());
  CHECK(closed.store.ReadTree()->count("ada/forged") == 0);
  closed.CheckFiles();
  closed.CheckVerifies();
}

// The chain's file has it, so it was durable: it is not given up for the damage of its frame.
TEST_CASE("a record that the journal lost at its end is taken from the chain's file") {
  SimStore store;
  Check(store.store->Checkpoint());
  Check(store.store.MakeDirectory("ada/kept"));
  Check(store.store->RunCommitterOnce());
  const auto left = store.io.AfterKill();
  const std::string journal = "journal/" + left->List("journal")->front();
  const size_t at = Read(*left, journal).find("\"path\":\"kept\"");
  REQUIRE(at != Bytes::npos);
  REQUIRE(left->Overwrite(journal, at, "X"));
  CHECK(Tells(FindProblems(*left), "record", "chains/1"));

  LivingStore again(*left);
  Check(again.Open());
  CHECK(again.ReadTree()->count("ada/kept") == 1);
}

// A record that neither journal nor chain has: whatever else changes, and however often it is
// opened, the stream is never continued before the gap.
TEST_CASE("a stream that lacks a record stays closed, until the record is there again") {
  SimStore store;
  store.Save("ada/one", "1");
  store.Save("ada/two", "2");
  store.store.Close();
  Write(store.io, "REBUILD", {});
  Check(store.store.Open());  // all of it lies in a pack now
  store.store.Close();
  const Bytes chain = Read(store.io, kChain);
  const size_t line = chain.find("\"path\":\"one\"");
  const size_t begin = chain.rfind('\n', line) + 1;
  Write(store.io, kChain, chain.substr(0, begin));
  std::string pack;
  size_t at = Bytes::npos;
  const auto packs = store.io.List("packs");
  for (const std::string& name : *packs) {
    pack = "packs/" + name;
    at = Read(store.io, pack).find("\"path\":\"one\"");
    if (at != Bytes::npos) break;
  }
  REQUIRE(at != Bytes::npos);
  const char byte = Read(store.io, pack)[at];
  REQUIRE(store.io.Overwrite(pack, at, "X"));
  Empty(store.io, "index");

  for (int opening = 0; opening < 3; ++opening) {
    Check(store.store.Open());
    CHECK_FALSE(store.store->FindAgent("ada")->read_only_reason.empty());
    CHECK(store.store.MakeDirectory("ada/more").code() == Code::kReadOnly);
    store.store.Close();
  }
  REQUIRE(store.io.Overwrite(pack, at, ByteView(&byte, 1)));
  Check(store.store.Open());
  CHECK(store.store->FindAgent("ada")->read_only_reason.empty());
  CHECK(store.store.ReadTree()->count("ada/two") == 1);
  Check(store.store.MakeDirectory("ada/more"));
  store.CheckVerifies();
}

}  // namespace memoirfs::testing
