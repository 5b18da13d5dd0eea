// Purging an agent: nothing of it is left in the store, nothing of others is lost, and a stop at
// any call leaves the agent whole or gone.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "store/cas/chunk_tree.h"
#include "store/volume/verify.h"
#include "tests/crash/volume_workload.h"

namespace memoirfs::testing {
namespace {

constexpr char kOther[] = "other";

// 64 characters that no compression shortens, and that stand nowhere else.
std::string Marker(const std::string& label) { return Sha256::Of("marker " + label).ToHex(); }

std::vector<std::string> NamesIn(FileIo& io, const std::string& directory) {
  return std::move(io.List(directory)).value();
}

Bytes FileAt(FileIo& io, const std::string& path) {
  return std::move(ReadWholeFile(io, path)).value();
}

// The markers that a test wrote, by what they were.
class Markers {
 public:
  std::string operator()(const std::string& label) {
    return known_.emplace(label, Marker(label)).first->second;
  }
  // "<what> in <file>" for each one that a file of the store still holds.
  std::vector<std::string> FoundIn(FileIo& io) const {
    std::vector<std::string> found;
    Search(io, ".", found);
    return found;
  }

 private:
  void Search(FileIo& io, const std::string& directory, std::vector<std::string>& found) const {
    for (const std::string& name : NamesIn(io, directory)) {
      const std::string path = directory == "." ? name : directory + "/" + name;
      if (io.Stat(path)->is_directory) {
        Search(io, path, found);
        continue;
      }
      const Bytes bytes = FileAt(io, path);
      for (const auto& [label, marker] : known_) {
        if (bytes.find(marker) != Bytes::npos) found.push_back(label + " in " + path);
      }
    }
  }

  std::map<std::string, std::string> known_;
};

Bytes Repeated(const std::string& marker, size_t size) {
  Bytes text;
  for (size_t i = 0; text.size() < size; ++i) text += fmt::format("{} {}\n", marker, i);
  return text;
}

void Check(const Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

void Put(LivingStore& store, const std::string& path, const Bytes& text) {
  Check(store.Create(path));
  Check(store.Commit(path, text));
}

void CheckVerifies(LivingStore& store) {
  const auto report = volume::VerifyVolume(*store, {}, {});
  Check(report.status());
  for (const volume::VerifyProblem& problem : report->problems) {
    UNSCOPED_INFO(problem.what << " " << problem.where << ": expected " << problem.expected
                               << ", found " << problem.found);
  }
  CHECK(report->problems.empty());
}

// A big part of a file that no commit ever referred to.
void SpillUnkept(LivingStore& store, const Bytes& text) {
  const auto session = store->StartChunkSession();
  Check(session.status());
  const auto bytes = std::make_shared<const Bytes>(text.substr(0, cas::kChunkSize));
  Check((*session)->Store(Sha256::Of(*bytes), bytes));
  Check((*session)->Finish());
}

// Every place where an agent's bytes can come to lie.
void LiveLife(LivingStore& store, const std::string& agent, Markers& marker) {
  const std::string root = agent + "/";
  Put(store, root + marker("a name"), marker("small content"));
  Put(store, root + "notes", marker("overwritten content"));
  Check(store.Commit(root + "notes", marker("newer content")));
  Put(store, root + "log", Repeated(marker("a base"), 4000));
  Check(store.Extend(root + "log", marker("a suffix")));
  Check(store.Create(root + "big"));
  Check(store.CommitTree(root + "big", Repeated(marker("big content"), 700'000)));
  Check(store.CommitTree(root + "big", Repeated(marker("newer big content"), 600'000)));
  SpillUnkept(store, Repeated(marker("a part that no commit kept"), cas::kChunkSize));
  Check(store->Checkpoint());
  Check(store.SetXattr(root + "notes", "user." + marker("xattr name"), marker("old value")));
  Check(store.SetXattr(root + "notes", "user." + marker("xattr name"), marker("new value")));
  Check(store.SetXattr(root + "notes", "user.gone", marker("value of a removed xattr")));
  Check(store.SetXattr(root + "notes", "user.gone", std::nullopt));
  Check(store.MakeSymlink(root + "link", "/" + marker("symlink target")));
  Check(store.MakeDirectory(root + marker("directory")));
  Put(store, root + marker("deleted file"), marker("deleted content"));
  Check(store.Unlink(root + marker("deleted file")));
  Check(store.Rename(root + "notes", root + marker("renamed"), volume::RenameMode::kReplace));
  Check(store.Create(root + marker("created only")));
  Check(store->Checkpoint());
  Check(store.Create(root + marker("created late")));
}

// What stays: among it what the purged agent has as well, or has under what it extends.
void LiveOtherLife(LivingStore& store, const std::string& agent) {
  const std::string root = agent + "/";
  const Bytes base = Repeated(Marker("shared base"), 5000);
  Put(store, root + "grown", base);
  Check(store.Extend(root + "grown", "and more"));
  Put(store, std::string(kOther) + "/grown", base + "and more");
  const Bytes shared = Repeated(Marker("shared tree"), 600'000);
  for (const std::string& owner : {root, std::string(kOther) + "/"}) {
    Check(store.Create(owner + "shared"));
    Check(store.CommitTree(owner + "shared", shared));
  }
  Put(store, "other/own", "only the other one's");
  Check(store.SetXattr("other/own", "user.a", Bytes("an old value of the other one")));
  Check(store.SetXattr("other/own", "user.a", Bytes("a new value of the other one")));
}

// A store of two agents, of which the first is to be purged.
struct Pair {
  SimIo io;
  Markers marker;
  std::string agent = marker("agent");
  std::unique_ptr<LivingStore> store;
  Tree other;  // what the other agent has

  explicit Pair(bool long_life = true) {
    LogNowhere();
    Check(volume::InitStore(io, CrashOptions()));
    store = std::make_unique<LivingStore>(io);
    Check(store->Open());
    Check(store->AddAgent(agent));
    Check(store->AddAgent(kOther));
    LiveOtherLife(*store, agent);
    if (long_life) LiveLife(*store, agent, marker);
    other = TreeOf(*store, kOther);
  }

  static Tree TreeOf(LivingStore& store, const std::string& name) {
    Tree tree;
    const auto all = store.ReadTree();
    Check(all.status());
    for (const auto& [path, what] : *all) {
      if (path == name || path.starts_with(name + "/")) tree.emplace(path, what);
    }
    return tree;
  }

  StreamId OtherStream() { return (*store)->FindAgent(kOther)->stream; }
  void Reopen() {
    store->Close();
    Check(store->Open());
  }
  // What lies in journals lies in packs then.
  void CarryAllIntoPacks() {
    store->Close();
    Check(WriteFileAtomically(io, "REBUILD", {}));
    Check(store->Open());
  }
  void Purge() {
    Check((*store)->RemoveAgent(agent, true));
    Reopen();
  }
  void CheckGone() {
    CHECK(store->ReadTree().value() == other);
    CHECK(marker.FoundIn(io) == std::vector<std::string>());
    CheckVerifies(*store);
  }
};

// The file in `directory` that ends like that and comes first.
std::string FirstOf(FileIo& io, const std::string& directory, const std::string& suffix) {
  for (const std::string& name : NamesIn(io, directory)) {
    if (name.ends_with(suffix)) return directory + "/" + name;
  }
  FAIL("no such file");
  return "";
}

void Flip(SimIo& io, const std::string& path, uint64_t offset) {
  const char flipped = static_cast<char>(FileAt(io, path)[offset] ^ 0x10);
  REQUIRE(io.Overwrite(path, offset, ByteView(&flipped, 1)));
}

}  // namespace

TEST_CASE("a purge leaves no byte of the agent in the store") {
  Pair pair;
  const bool removed_first = GENERATE(false, true);
  if (removed_first) {
    Check((*pair.store)->RemoveAgent(pair.agent, false));
    pair.Reopen();
  }
  CHECK(pair.marker.FoundIn(pair.io).size() > 10);
  pair.Purge();
  pair.CheckGone();
  pair.Reopen();
  pair.CheckGone();
}

TEST_CASE("a purge reaches what a crash put into quarantine") {
  Pair pair;
  pair.store->Close();
  Check(WriteFileAtomically(pair.io, "quarantine/00000000000000000001-0123456789abcdef.tail",
                            "torn " + pair.marker("torn tail")));
  Check(pair.store->Open());
  pair.Purge();
  pair.CheckGone();
}

TEST_CASE("a purge reaches into packs whose footers or frames are damaged") {
  Pair pair;
  pair.CarryAllIntoPacks();
  pair.store->Close();
  const std::string suffix = GENERATE(".pack", ".bulk");
  const std::string path = FirstOf(pair.io, "packs", suffix);
  Flip(pair.io, path, pair.io.Stat(path)->size - 60);
  const Bytes pack = FileAt(pair.io, path);
  const std::string label = suffix == ".pack" ? "overwritten content" : "big content";
  const size_t at = pack.find(pair.marker(label));
  if (at != Bytes::npos) Flip(pair.io, path, at + Marker(label).size() + 1);
  Check(pair.store->Open());
  pair.Purge();
  CHECK(pair.marker.FoundIn(pair.io) == std::vector<std::string>());
  CHECK(pair.store->ReadTree().value() == pair.other);
}

TEST_CASE("an agent that cannot be written any more can be purged") {
  Pair pair;
  pair.CarryAllIntoPacks();
  pair.store->Close();
  // Without its chain file and its frames, record 3 is lost.
  Check(WriteFileAtomically(pair.io, "REBUILD", {}));
  const std::string segment = "chains/" + NamesIn(pair.io, "chains").front() + "/000001.jsonl";
  for (const std::string& name : NamesIn(pair.io, "packs")) {
    const std::string path = "packs/" + name;
    const size_t at = FileAt(pair.io, path).find("\"seq\":3,\"stream\":1");
    if (at != Bytes::npos) Flip(pair.io, path, at + 2);
  }
  Flip(pair.io, segment, FileAt(pair.io, segment).find("\"seq\":3,") + 2);
  Check(pair.store->Open());
  REQUIRE_FALSE((*pair.store)->ListAgents().front().read_only_reason.empty());
  pair.Purge();
  CHECK(pair.marker.FoundIn(pair.io) == std::vector<std::string>());
  CHECK(pair.store->ReadTree().value() == pair.other);
}

TEST_CASE("a purge keeps old values of another agent's attributes, which its chain names") {
  Pair pair(false);
  const Bytes old_value = "an old value of the other one";
  pair.Purge();
  CHECK((*pair.store)->objects().GetFromDisk(Sha256::Of(old_value)).ok());
}

// A flat file can have the bytes of a tree's node, and so its digest.
TEST_CASE("a purge keeps the chunks of a tree whose root is also a flat file") {
  Pair pair(false);
  const std::string other(kOther);
  const volume::Entry entry =
      (*pair.store)->Lookup(pair.OtherStream(), kRootInode, "shared").value();
  const ContentId tree = (*pair.store)->GetInode(pair.OtherStream(), entry.ino)->content;
  REQUIRE(tree.kind == ContentKind::kTree);
  Put(*pair.store, other + "/0node", **(*pair.store)->objects().Get(tree.digest));
  pair.Purge();
  CheckVerifies(*pair.store);
}

TEST_CASE("a purge with another agent's tree damaged gives nothing of the other one away") {
  Pair pair;
  const StreamId stream = pair.OtherStream();
  Put(*pair.store, "other/tree", "");
  Check(pair.store->CommitTree("other/tree", Repeated("others", 600'000)));
  const volume::Entry entry = (*pair.store)->Lookup(stream, kRootInode, "tree").value();
  const ContentId tree = (*pair.store)->GetInode(stream, entry.ino)->content;
  const Bytes node = **(*pair.store)->objects().Get(tree.digest);
  const Digest chunk = Digest::FromRaw(ByteView(node).substr(8, Digest::kSize));
  pair.store->Close();
  const std::string journal = [&] {
    for (const std::string& name : NamesIn(pair.io, "journal")) {
      const std::string path = "journal/" + name;
      if (FileAt(pair.io, path).find(node) != Bytes::npos) return path;
    }
    return FirstOf(pair.io, "packs", ".pack");
  }();
  Flip(pair.io, journal, FileAt(pair.io, journal).find(node) + 40);
  Check(pair.store->Open());
  pair.Purge();
  CHECK((*pair.store)->objects().GetFromDisk(chunk).ok());
  const std::vector<std::string> left = pair.marker.FoundIn(pair.io);
  // It names no agent, so it may be the other one's.
  for (const std::string& found : left) CHECK(found.starts_with("a part that no commit kept"));
}

TEST_CASE("between the decision to purge and the next opening nothing is changed") {
  Pair pair(false);
  const StreamId stream = (*pair.store)->FindAgent(pair.agent)->stream;
  Check((*pair.store)->RemoveAgent(pair.agent, true));
  CHECK((*pair.store)->FindAgent(pair.agent).code() == Code::kNotFound);
  CHECK((*pair.store)->FindVersion(stream, "grown", {}).code() == Code::kNotFound);
  CHECK((*pair.store)->AddAgent("new", 1, 1).code() == Code::kReadOnly);
  CHECK((*pair.store)->RemoveAgent(kOther, true).code() == Code::kReadOnly);
  CHECK(pair.store->MakeDirectory("other/d").code() == Code::kReadOnly);
  pair.Reopen();
  Check(pair.store->MakeDirectory("other/d"));
}

TEST_CASE("the number of a purged agent is never given again") {
  Pair pair(false);
  Check(pair.store->AddAgent("last"));
  const StreamId last = (*pair.store)->FindAgent("last")->stream;
  Check((*pair.store)->RemoveAgent("last", true));
  pair.Reopen();
  Check(WriteFileAtomically(pair.io, "REBUILD", {}));
  pair.Reopen();
  Check(pair.store->AddAgent("last"));
  CHECK((*pair.store)->FindAgent("last")->stream > last);
  CHECK((*pair.store)->FindAgent("last")->head.seq == Seq(1));
}

TEST_CASE("a damaged note of used numbers or of a purge refuses the store and says what to do") {
  Pair pair(false);
  Check((*pair.store)->RemoveAgent(pair.agent, true));
  pair.store->Close();
  const std::string file = GENERATE("STREAMS", "PURGE");
  Flip(pair.io, file, 20);
  const Status opened = pair.store->Open();
  CHECK(opened.code() == Code::kCorrupt);
  CHECK(opened.message().find(file) != std::string::npos);
}

TEST_CASE("a purge that finds no room is finished by a later opening, and loses nothing new") {
  Pair pair;
  Check((*pair.store)->RemoveAgent(pair.agent, true));
  pair.store->Close();
  size_t pending = 0;
  for (uint64_t n = 1; n < 60; ++n) {
    INFO("rename " << n);
    const auto io = pair.io.AfterKill();
    LivingStore store(*io);
    io->FailAt(n, ENOSPC, SimCall::kRename);
    const bool opened = store.Open().ok();
    io->ClearFaults();
    if (!opened || store->Facts().purge_pending.empty()) continue;
    ++pending;
    CHECK(store.ReadTree().value() == pair.other);
    // The same bytes as the purged agent's, stored anew while those are still there.
    Put(store, "other/same", Marker("newer content"));
    Check(store.AddAgent(pair.agent));
    store.Close();
    Check(store.Open());
    CHECK(store->Facts().purge_pending.empty());
    for (const std::string& found : pair.marker.FoundIn(*io)) {
      CHECK((found.starts_with("newer content") || found.starts_with("agent")));
    }
    CheckVerifies(store);
  }
  CHECK(pending > 2);
}

TEST_CASE("a purge that is stopped at any call leaves the agent whole or gone") {
  const Pair before;
  Markers marker = before.marker;
  const auto start = before.io.AfterKill();
  Tree with_agent;
  {
    const auto io = start->AfterKill();
    LivingStore store(*io);
    Check(store.Open());
    with_agent = store.ReadTree().value();
  }
  bool done = false;
  for (uint64_t n = 1; !done; n += 3) {
    const auto io = start->AfterKill();
    {
      LivingStore store(*io);
      Check(store.Open());
      io->CrashAt(n);
      const Status removed = store->RemoveAgent(before.agent, true);
      store.Close();
      done = removed.ok() && store.Open().ok() && !io->crashed();
    }
    for (const bool power_cut : {false, true}) {
      INFO("call " << n << (power_cut ? ", power cut" : ", kill"));
      const auto left = power_cut ? io->AfterPowerCut(n) : io->AfterKill();
      LivingStore store(*left);
      Check(store.Open());
      const Tree tree = store.ReadTree().value();
      const bool gone = tree.count(before.agent) == 0;
      CHECK((gone || !done));
      const std::string difference = FirstDifference(gone ? before.other : with_agent, tree);
      CHECK(difference == "");
      if (gone) CHECK(marker.FoundIn(*left) == std::vector<std::string>());
      CheckVerifies(store);
    }
  }
}

}  // namespace memoirfs::testing
