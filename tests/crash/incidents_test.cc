// What a store finds wrong with itself is in the chains of the agents that it concerns.

#include "store/volume/incidents.h"

#include <catch2/catch.hpp>

#include "store/base/coding.h"
#include "store/base/json.h"
#include "store/cas/chunk_tree.h"
#include "store/volume/repair.h"
#include "store/volume/verify.h"
#include "tests/crash/volume_workload.h"

namespace memoirfs::testing {
namespace {

void Check(const Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

Bytes FileAt(FileIo& io, const std::string& path) {
  return std::move(ReadWholeFile(io, path)).value();
}

std::vector<std::string> PathsIn(FileIo& io, const std::string& directory) {
  std::vector<std::string> paths = std::move(io.List(directory)).value();
  for (std::string& path : paths) path = directory + "/" + path;
  return paths;
}

void Flip(SimIo& io, const std::string& path, uint64_t offset) {
  const char flipped = static_cast<char>(FileAt(io, path)[offset] ^ 0x10);
  REQUIRE(io.Overwrite(path, offset, ByteView(&flipped, 1)));
}

// Damages the first place where a journal or pack holds `text`, in the middle of it.
void Damage(SimIo& io, const std::string& text) {
  for (const char* directory : {"journal", "packs"}) {
    for (const std::string& path : PathsIn(io, directory)) {
      const size_t at = FileAt(io, path).find(text);
      if (at == Bytes::npos) continue;
      Flip(io, path, at + text.size() / 2);
      return;
    }
  }
  FAIL("no file holds '" << text << "'");
}

// What a record of an incident says.
struct Told {
  chain::Op op{};
  std::string path;
  Json findings;
};

// A store of two agents with a file each.
struct Store {
  std::unique_ptr<SimIo> io = std::make_unique<SimIo>();
  std::unique_ptr<LivingStore> living;

  Store() {
    LogNowhere();
    Check(volume::InitStore(*io, CrashOptions()));
    Open();
    for (const char* agent : {"ada", "bob"}) {
      Check(living->AddAgent(agent));
      Put(std::string(agent) + "/file", std::string("text of ") + agent);
    }
    Check((*living)->Sync());
  }

  LivingStore& operator*() { return *living; }
  volume::Volume* operator->() { return &**living; }

  void Open() {
    living = std::make_unique<LivingStore>(*io);
    Check(living->Open());
  }
  void Reopen() {
    living.reset();
    Open();
  }
  // What kill -9 leaves, opened anew after `change`.
  void Kill(const std::function<void(SimIo&)>& change) {
    auto left = io->AfterKill();
    living.reset();
    io = std::move(left);
    change(*io);
    Open();
  }
  void Put(const std::string& path, const Bytes& text) {
    Check(living->Create(path));
    Check(living->Commit(path, text));
  }
  StreamId StreamOf(const std::string& agent) { return (*living)->FindAgent(agent)->stream; }

  std::vector<Told> ToldIn(const std::string& agent) {
    std::vector<Told> told;
    Check((*living)->ForEachRecord(
        StreamOf(agent), Seq(1), [&](const chain::ParsedRecord& record, std::string_view) {
          const chain::Op op = record.change.op;
          if (op == chain::Op::kRecover || op == chain::Op::kQuarantine ||
              op == chain::Op::kRepair) {
            const Json detail = Json::parse(record.change.detail);
            told.push_back({op, record.change.path, detail.at("findings")});
          }
          return Status();
        }));
    return told;
  }
  // The chain's only incident, of one finding.
  Json OnlyFinding(const std::string& agent, chain::Op op) {
    const std::vector<Told> told = ToldIn(agent);
    REQUIRE(told.size() == 1);
    CHECK(told[0].op == op);
    REQUIRE(told[0].findings.size() == 1);
    return told[0].findings[0];
  }
  void CheckVerifies() {
    const auto report = volume::VerifyVolume(**living, {}, {});
    Check(report.status());
    CHECK(report->problems.empty());
  }
};

}  // namespace

TEST_CASE("a torn tail is told in each chain, once, by its digest") {
  Store store;
  const Bytes torn = "torn bytes";
  store.Kill([&](SimIo& io) {
    const std::string path = PathsIn(io, "journal").front();
    const size_t end = journal::AlignFrame(FileAt(io, path).find_last_not_of('\0') + 1);
    REQUIRE(io.Overwrite(path, end, torn));
  });
  for (const char* agent : {"ada", "bob"}) {
    const Json finding = store.OnlyFinding(agent, chain::Op::kRecover);
    CHECK(finding.at("what") == "torn-tail");
    CHECK(finding.at("found").get<std::string>().find(Sha256::Of(torn).ToHex()) !=
          std::string::npos);
    CHECK(finding.at("where").get<std::string>().starts_with("journal/"));
  }
  store.CheckVerifies();
  store.Reopen();
  CHECK(store.ToldIn("ada").size() == 1);
}

TEST_CASE("a store that was killed and has lost nothing says nothing") {
  Store store;
  store.Kill([](SimIo&) {});
  CHECK(store.ToldIn("ada").empty());
}

TEST_CASE("damage of the journal is told, and a record that only the chain's file had") {
  Store store;
  Check(store->Checkpoint());
  store.Put("ada/other", "more of ada");
  store.Put("bob/other", "more of bob");
  Check(store->RunCommitterOnce());
  Check(store->RunCommitterOnce());
  store.Kill([](SimIo& io) { Damage(io, R"("path":"other")"); });
  const std::vector<Told> ada = store.ToldIn("ada");
  REQUIRE(ada.size() == 1);
  CHECK(ada[0].op == chain::Op::kRecover);
  CHECK(ada[0].findings[0].at("what") == "damage");
  store.CheckVerifies();
}

TEST_CASE("a rebuilt index is told: as recovered when it was lost, as repaired when asked for") {
  Store store;
  store.living.reset();
  const bool asked_for = GENERATE(false, true);
  if (asked_for) {
    Check(volume::RepairStore(*store.io, Clock::Real(), CrashOptions()).status());
  } else {
    Check(WriteFileAtomically(*store.io, "REBUILD", {}));
  }
  store.Open();
  const Json finding =
      store.OnlyFinding("bob", asked_for ? chain::Op::kRepair : chain::Op::kRecover);
  CHECK(finding.at("what") == "index");
  store.CheckVerifies();
}

TEST_CASE("an object that does not verify is told in the chains that refer to it, and its repair") {
  Store store;
  const Bytes text = "a text that gets damaged";
  store.Put("ada/damaged", text);
  Check(store->Sync());
  store.Kill([&](SimIo& io) { Damage(io, text); });
  // The damaged frame is the last one that counts or is skipped: what was found is one more thing.
  const size_t before = store.ToldIn("ada").size();
  const size_t before_bob = store.ToldIn("bob").size();
  CHECK(store->objects().Get(Sha256::Of(text)).code() == Code::kCorrupt);
  Check(store->RunCommitterOnce());
  std::vector<Told> ada = store.ToldIn("ada");
  REQUIRE(ada.size() == before + 1);
  CHECK(ada.back().op == chain::Op::kQuarantine);
  CHECK(ada.back().path == "damaged");
  CHECK(ada.back().findings[0].at("what") == "object");
  CHECK(ada.back().findings[0].at("expected") == Sha256::Of(text).ToHex());
  CHECK(store.ToldIn("bob").size() == before_bob);

  store.Put("ada/again", text);
  Check(store->RunCommitterOnce());
  ada = store.ToldIn("ada");
  REQUIRE(ada.size() == before + 2);
  CHECK(ada.back().op == chain::Op::kRepair);
  CHECK(ada.back().findings[0].at("expected") == Sha256::Of(text).ToHex());
  store.CheckVerifies();
}

TEST_CASE("a chunk of a big file that does not verify is told with the file's path") {
  Store store;
  Bytes text;
  for (int i = 0; text.size() < 600'000; ++i) text += "line " + std::to_string(i) + "\n";
  Check(store.living->Create("bob/big"));
  Check(store.living->CommitTree("bob/big", text));
  store.living.reset();
  Damage(*store.io, "line 40000\n");
  store.Open();
  const Digest chunk = Sha256::Of(ByteView(text).substr(cas::kChunkSize, cas::kChunkSize));
  CHECK(store->objects().Get(chunk).code() == Code::kCorrupt);
  Check(store->RunCommitterOnce());
  const Json finding = store.OnlyFinding("bob", chain::Op::kQuarantine);
  CHECK(finding.at("where").get<std::string>().starts_with("packs/"));
  CHECK(finding.at("found").get<std::string>().starts_with("its bytes have the SHA-256 "));
  CHECK(store.ToldIn("bob").front().path == "big");
  CHECK(store.ToldIn("ada").empty());
}

TEST_CASE("a store that is opened read-only records nothing") {
  Store store;
  store.living.reset();
  Check(WriteFileAtomically(*store.io, "REBUILD", {}));
  volume::VolumeOptions options = CrashOptions();
  options.read_only = true;
  SteppingClock stepping;
  {
    const auto opened = volume::Volume::Open(*store.io, stepping, options);
    Check(opened.status());
  }
  store.Open();
  CHECK(store.ToldIn("ada").empty());
}

TEST_CASE("a pack with a footer of a later version refuses the store that has to read it") {
  Store store;
  store.living.reset();
  Check(WriteFileAtomically(*store.io, "REBUILD", {}));
  store.Open();  // all lies in packs now
  store.living.reset();
  const std::string path = PathsIn(*store.io, "packs").front();
  const Bytes pack = FileAt(*store.io, path);
  Bytes trailer = pack.substr(pack.size() - 64, 48);
  trailer += Encoder().U32(2).Take();
  trailer += Encoder().U32(Crc32c(trailer)).Take();
  REQUIRE(store.io->Overwrite(path, pack.size() - 64, trailer));
  Check(WriteFileAtomically(*store.io, "REBUILD", {}));
  LivingStore living(*store.io);
  const Status opened = living.Open();
  CHECK(opened.code() == Code::kUnknownFormat);
  CHECK(opened.message().find("footer of version 2") != std::string::npos);
  CHECK(FileAt(*store.io, path).substr(pack.size() - 64, 56) == trailer);
}

TEST_CASE("what is told is bounded, whatever was found") {
  std::vector<volume::Finding> findings(5000, {"object", std::string(100'000, 'x'), "\xff", "z"});
  const std::string detail = volume::DetailOf(findings);
  CHECK(detail.size() < 100'000);
  CHECK(Json::parse(detail).at("more").get<size_t>() + Json::parse(detail).at("findings").size() ==
        5000);
}

}  // namespace memoirfs::testing
