// A store stopped at every call that changes the disk: killed, cut off from power, refused a call,
// and stopped again while it recovers. MEMOIRFS_CRASH_LONG=1 takes every call instead of a stride.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "store/volume/verify.h"
#include "tests/crash/volume_workload.h"

namespace memoirfs::testing {
namespace {

bool IsLong() { return std::getenv("MEMOIRFS_CRASH_LONG") != nullptr; }
uint64_t Stride(uint64_t usual) { return IsLong() ? 1 : usual; }

const std::vector<Step>& Steps() {
  static const std::vector<Step> kSteps = CrashWorkload();
  return kSteps;
}

// What a life left behind: the trees it went through, as far as it went.
struct History {
  std::vector<Tree> trees{Tree()};  // after each change
  size_t acknowledged = 0;          // of them; there may be one more, that was in flight
  size_t durable = 0;
  std::string last_step = "nothing";
};

// The life that nothing disturbs, as every other one goes until its fault.
class Reference {
 public:
  static const Reference& Get() {
    static const Reference kReference;
    return kReference;
  }
  std::unique_ptr<SimIo> NewDisk() const { return initial_->AfterKill(); }
  const std::vector<Tree>& trees() const { return trees_; }
  uint64_t changing_calls() const { return changing_calls_; }
  uint64_t all_calls() const { return all_calls_; }

 private:
  Reference() {
    LogNowhere();
    initial_ = std::make_unique<SimIo>();
    REQUIRE(volume::InitStore(*initial_, CrashOptions()).ToString() == "ok");
    const std::unique_ptr<SimIo> io = NewDisk();
    LivingStore store(*io);
    REQUIRE(store.Open().ToString() == "ok");
    for (const Step& step : Steps()) {
      INFO(step.name);
      REQUIRE(step.run(store).ToString() == "ok");
      Result<Tree> tree = store.ReadTree();
      REQUIRE(tree.status().ToString() == "ok");
      if (step.changes) trees_.push_back(*tree);
      CHECK(FirstDifference(trees_.back(), *tree) == "");
    }
    store.Close();
    changing_calls_ = io->calls(SimCall::kChange);
    all_calls_ = io->calls(SimCall::kAny);
    CHECK(io->List("packs")->size() > 4);
  }

  std::unique_ptr<SimIo> initial_;
  std::vector<Tree> trees_{Tree()};
  uint64_t changing_calls_ = 0;
  uint64_t all_calls_ = 0;
};

// Goes on until a step fails, which the machine's stop makes it do.
History LiveUntilCrash(LivingStore& store) {
  History history;
  history.trees = Reference::Get().trees();
  if (!store.Open().ok()) return history;
  for (const Step& step : Steps()) {
    history.last_step = step.name;
    const bool done = step.run(store).ok();
    history.acknowledged += done && step.changes ? 1 : 0;
    if (done && step.makes_durable) history.durable = history.acknowledged;
    if (done) continue;
    history.trees.resize(history.acknowledged + (step.changes ? 2 : 1));
    return history;
  }
  return history;
}

std::string VerifyProblems(volume::Volume& volume, volume::VerifyLevel level) {
  const auto report = volume::VerifyVolume(volume, {std::nullopt, level}, {});
  if (!report.ok()) return report.status().ToString();
  if (report->problems.empty()) return "";
  const volume::VerifyProblem& first = report->problems.front();
  return fmt::format("{} problems, the first: {} {}: expected {}, found {}",
                     report->problems.size(), first.what, first.where, first.expected, first.found);
}

// A change in every chain that can be changed.
Status WriteSomething(LivingStore& store) {
  for (const volume::AgentFacts& agent : store->ListAgents()) {
    if (!agent.removed) TRY(store.MakeDirectory(agent.name + "/probe"));
  }
  return store->Sync();
}

// "" or what is wrong with a store that is opened after its life: its tree must be one of
// trees[least..], it must be writable and must verify.
std::string CheckStore(SimIo& io, const History& history, size_t least) {
  LivingStore store(io);
  const Status opened = store.Open();
  if (!opened.ok()) return "it does not open: " + opened.ToString();
  const auto tree = store.ReadTree();
  if (!tree.ok()) return "its tree can't be read: " + tree.status().ToString();
  std::string difference;
  for (size_t i = history.trees.size(); i > least; --i) {
    difference = FirstDifference(history.trees[i - 1], *tree);
    if (difference.empty()) break;
  }
  if (!difference.empty()) {
    return fmt::format("its tree is none of {} to {}; from the first: {}", least,
                       history.trees.size() - 1, difference);
  }
  const std::string problems = VerifyProblems(*store, volume::VerifyLevel::kObjects);
  if (!problems.empty()) return "it does not verify: " + problems;
  const Status written = WriteSomething(store);
  if (!written.ok()) return "it is not writable: " + written.ToString();
  const std::string later = VerifyProblems(*store, volume::VerifyLevel::kIndex);
  return later.empty() ? "" : "it does not verify after a change: " + later;
}

// What was noted of a life that the machine's stop at a call ended.
struct Crash {
  explicit Crash(uint64_t at) : io(Reference::Get().NewDisk()) {
    io->CrashAt(at);
    LivingStore store(*io);
    history = LiveUntilCrash(store);
  }
  std::string Where(uint64_t n) const {
    return fmt::format("call {}, in '{}', {} changes acknowledged, {} durable: ", n,
                       history.last_step, history.acknowledged, history.durable);
  }
  std::unique_ptr<SimIo> io;
  History history;
};

}  // namespace

TEST_CASE("a store that is killed at any call loses nothing acknowledged") {
  const uint64_t calls = Reference::Get().changing_calls();
  for (uint64_t n = 1; n <= calls; n += Stride(4)) {
    const Crash crash(n);
    const auto left = crash.io->AfterKill();
    const std::string wrong = CheckStore(*left, crash.history, crash.history.acknowledged);
    if (!wrong.empty()) FAIL_CHECK("kill at " << crash.Where(n) << wrong);
  }
}

TEST_CASE("a power cut at any call leaves a prefix with everything that was synced") {
  const uint64_t calls = Reference::Get().changing_calls();
  for (uint64_t n = 2; n <= calls; n += Stride(7)) {
    const Crash crash(n);
    for (const uint64_t seed : {n, n + 1'000'003, n + 2'000'003}) {
      const auto left = crash.io->AfterPowerCut(seed);
      const std::string wrong = CheckStore(*left, crash.history, crash.history.durable);
      if (!wrong.empty()) {
        FAIL_CHECK("power cut, seed " << seed << ", at " << crash.Where(n) << wrong);
      }
    }
  }
}

// Every call of a recovery is a place to stop at again.
TEST_CASE("a recovery that is stopped at any call is as good as one that is not") {
  const uint64_t calls = Reference::Get().changing_calls();
  for (uint64_t n = 31; n <= calls; n += Stride(211)) {
    const Crash crash(n);
    const auto killed = crash.io->AfterKill();
    const auto cut = crash.io->AfterPowerCut(n);
    for (uint64_t second = 1;; second += Stride(3)) {
      History survives = crash.history;
      const auto check = [&](SimIo& before, size_t least, const char* kind, bool cut_again) {
        const auto recovering = before.AfterKill();
        recovering->CrashAt(second);
        LivingStore store(*recovering);
        const bool opened = store.Open().ok();
        store.Close();
        const auto left = cut_again ? recovering->AfterPowerCut(second) : recovering->AfterKill();
        const std::string wrong = CheckStore(*left, survives, least);
        if (!wrong.empty()) {
          FAIL_CHECK(kind << ", seeds " << n << " and " << second << ", recovery stopped at call "
                          << second << ", first stop at " << crash.Where(n) << wrong);
        }
        return opened && !recovering->crashed();
      };
      bool done = check(*killed, survives.acknowledged, "kill and kill", false);
      done = check(*cut, survives.durable, "power cut and kill", false) && done;
      done = check(*killed, survives.durable, "kill and power cut", true) && done;
      done = check(*cut, survives.durable, "power cut twice", true) && done;
      if (done) break;
    }
  }
}

namespace {

// A life with a call that fails, which goes on behind it as far as the store lets it.
class FaultyLife {
 public:
  explicit FaultyLife(LivingStore& store) : store_(store) { history_.trees = {Tree()}; }

  const History& history() const { return history_; }

  // "" or what was wrong meanwhile.
  std::string Run() {
    if (!store_.Open().ok()) return "";
    for (const Step& step : Steps()) {
      history_.last_step = step.name;
      const Status status = step.run(store_);
      if (!store_.is_open()) return "";
      const std::string wrong = Follow(step, status);
      if (!wrong.empty()) return wrong;
      history_.acknowledged = history_.trees.size() - 1;
      if (status.ok() && step.makes_durable) history_.durable = history_.acknowledged;
      if (store_->Facts().read_only) break;
    }
    // The change that was refused last may have reached the journal all the same.
    if (in_flight_) history_.trees.push_back(*in_flight_);
    return "";
  }

 private:
  std::string Follow(const Step& step, const Status& status) {
    const auto& reference = Reference::Get().trees();
    in_flight_.reset();
    if (status.ok() && undisturbed_) {
      if (step.changes) history_.trees.push_back(reference[history_.trees.size()]);
      return "";
    }
    auto tree = store_.ReadTree();
    if (!tree.ok()) return "the tree can't be read: " + tree.status().ToString();
    const std::string difference = FirstDifference(history_.trees.back(), *tree);
    if (!difference.empty() && !step.changes) return "'" + step.name + "' changed " + difference;
    if (undisturbed_ && step.changes && store_->Facts().read_only) {
      in_flight_ = reference[history_.trees.size()];
    }
    undisturbed_ = false;
    if (!difference.empty()) history_.trees.push_back(*std::move(tree));
    return "";
  }

  LivingStore& store_;
  History history_;
  bool undisturbed_ = true;
  std::optional<Tree> in_flight_;
};

void CheckFaults(SimCall kind, int err, uint64_t first, uint64_t stride) {
  const uint64_t calls =
      kind == SimCall::kAny ? Reference::Get().all_calls() : Reference::Get().changing_calls();
  for (uint64_t n = first; n <= calls; n += stride) {
    const auto io = Reference::Get().NewDisk();
    io->FailAt(n, err, kind);
    LivingStore store(*io);
    FaultyLife life(store);
    std::string wrong = life.Run();
    const History& history = life.history();
    const auto cut = io->AfterPowerCut(n);
    io->ClearFaults();
    store.Close();
    if (wrong.empty()) wrong = CheckStore(*io, history, history.acknowledged);
    if (wrong.empty()) {
      wrong = CheckStore(*cut, history, history.durable);
      if (!wrong.empty()) wrong = "after a power cut, " + wrong;
    }
    if (!wrong.empty()) {
      FAIL_CHECK("errno " << err << " at call " << n << " of kind " << static_cast<int>(kind)
                          << ", up to '" << history.last_step << "', seed " << n << ": " << wrong);
    }
  }
}

}  // namespace

TEST_CASE("an input or output error at any call loses nothing acknowledged") {
  CheckFaults(SimCall::kChange, EIO, 1, Stride(9));
}

TEST_CASE("a full disk at any call loses nothing acknowledged") {
  CheckFaults(SimCall::kChange, ENOSPC, 3, Stride(11));
}

TEST_CASE("an error of any call that reads loses nothing acknowledged") {
  CheckFaults(SimCall::kAny, EIO, 2, Stride(37));
}

// The disk's or somebody's quota: where it ends, the store goes on without what needs room.
TEST_CASE("a lack of room at any call of a recovery loses nothing acknowledged") {
  const int err = GENERATE(ENOSPC, EDQUOT);
  const uint64_t calls = Reference::Get().changing_calls();
  for (const uint64_t n : {calls / 2, calls - 7}) {
    const Crash crash(n);
    const auto killed = crash.io->AfterKill();
    for (uint64_t second = 1;; second += Stride(2)) {
      const auto io = killed->AfterKill();
      io->FailAt(second, err, SimCall::kChange);
      LivingStore store(*io);
      (void)store.Open().ok();
      const bool done = io->calls(SimCall::kChange) < second;
      io->ClearFaults();
      store.Close();
      const std::string wrong = CheckStore(*io, crash.history, crash.history.acknowledged);
      if (!wrong.empty()) {
        FAIL_CHECK("errno " << err << " at call " << second << " of the recovery, stopped at "
                            << crash.Where(n) << wrong);
      }
      if (done) break;
    }
  }
}

}  // namespace memoirfs::testing
