// Runs the same system calls on a reference file system and on a mount, and compares what each call
// gave and everything that can be seen afterwards. A sequence that fails is shortened and printed.

#include <grp.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "tests/e2e/parity/differences.h"
#include "tests/e2e/parity/generator.h"
#include "tests/e2e/parity/minimise.h"
#include "tests/e2e/parity/pair.h"
#include "tests/e2e/parity/sabotage.h"

namespace memoirfs::parity {
namespace {

struct Options {
  Sides sides;
  uint64_t seed = 1;
  uint64_t sequences = 1000;
  uint64_t first = 0;
  unsigned seconds = 0;
  size_t steps = 30;
  size_t most_failures = 10;
  std::string sabotage;
  std::string remount;
  uint64_t remount_each = 500;
  std::vector<std::string> replays;
  bool trace = false;
  bool count_calls = false;
  bool list = false;
};

class Suite {
 public:
  explicit Suite(const Options& options) : options_(options) {
    run_.compare.started = ::time(nullptr);
    struct statvfs facts = {};
    ::statvfs(options.sides.reference.c_str(), &facts);
    run_.compare.access_times = (facts.f_flag & ST_NOATIME) != 0;
    run_.compare.movements = FineClock(options.sides.reference).Works();
    run_.sabotage = FindSabotage(options.sabotage);
    run_.trace = options.trace;
  }

  int Replay() {
    run_.each_step = Depth::kWhole;
    for (const std::string& path : options_.replays) {
      std::ifstream file(path);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const Script script = ParseScript(text);
      if (script.empty()) {
        std::printf("%s: no script\n", path.c_str());
        ++failures_;
        continue;
      }
      ++sequences_;
      if (const auto divergence = Try(script, &counts_)) Report(path, script, *divergence);
    }
    return Summary();
  }

  int Random() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options_.seconds);
    for (uint64_t i = options_.first; kinds_.size() < options_.most_failures; ++i) {
      const bool over = options_.seconds == 0 ? i >= options_.first + options_.sequences
                                              : std::chrono::steady_clock::now() >= end;
      if (over) break;
      Sequence(i);
      if (!options_.remount.empty() && sequences_ % options_.remount_each == 0) Remount();
    }
    if (!options_.remount.empty()) Remount();
    return Summary();
  }

 private:
  void Sequence(uint64_t number) {
    const GeneratorOptions generator{options_.steps, ::geteuid() == 0};
    const Script script = Generate(options_.seed * 1'000'003 + number, generator);
    ++sequences_;
    std::optional<Divergence> divergence;
    {
      const std::string name = NextName();
      Pair pair(options_.sides, name, run_);
      divergence = pair.Run(script, &counts_);
      if (!divergence && !options_.remount.empty()) kept_[name] = pair.KeepMountSide();
    }
    if (divergence) Explain("sequence " + std::to_string(number), script, *divergence);
  }

  std::optional<Divergence> Try(const Script& script, CallCounts* counts = nullptr) {
    Pair pair(options_.sides, NextName(), run_);
    return pair.Run(script, counts);
  }

  // Shortens and prints, unless a failure of this kind was printed before.
  void Explain(const std::string& title, const Script& script, const Divergence& divergence) {
    ++failures_;
    if (kinds_.count(divergence.kind) != 0) return;
    const Depth depth = std::exchange(run_.each_step, Depth::kWhole);
    const auto precise = Try(script);
    const Divergence& target = precise ? *precise : divergence;
    if (kinds_.insert(target.kind).second) {
      const Script start(script.begin(),
                         script.begin() + static_cast<std::ptrdiff_t>(target.step + 1));
      const Script shortest = Minimise(start, [&](const Script& candidate) {
        const auto found = Try(candidate);
        return found && found->kind == target.kind;
      });
      const auto last = Try(shortest);
      Print(title, shortest, last ? *last : target);
    }
    run_.each_step = depth;
  }

  void Report(const std::string& title, const Script& script, const Divergence& divergence) {
    ++failures_;
    Print(title,
          Script(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(divergence.step + 1)),
          divergence);
  }

  void Print(const std::string& title, const Script& script, const Divergence& divergence) {
    std::printf("# %s, seed %lu: %s\n# %s\n%s\n", title.c_str(), options_.seed,
                divergence.kind.c_str(), divergence.text.c_str(), Format(script).c_str());
    std::fflush(stdout);
  }

  // What was left by the sequences so far must be there again, to the nanosecond.
  void Remount() {
    std::fflush(stdout);
    if (std::system(options_.remount.c_str()) != 0) {
      std::printf("remounting failed: %s\n", options_.remount.c_str());
      ++failures_;
    }
    for (const auto& [name, before] : kept_) {
      const std::string path = options_.sides.mount + "/" + name;
      const Executor executor(path);
      const auto found = CompareExactly(before, TakeSnapshot(executor, Depth::kWhole));
      if (!found) {
        ++compared_again_;
      } else {
        ++failures_;
        std::printf("# after a remount: %s\n", found->text.c_str());
        const uint64_t number = std::stoull(name.substr(name.rfind('-') + 1));
        std::printf("# directory %lu of seed %lu\n", number, options_.seed);
      }
      std::filesystem::remove_all(path);
    }
    kept_.clear();
  }

  std::string NextName() {
    return "sequence-" + std::to_string(::getpid()) + "-" + std::to_string(next_++);
  }

  int Summary() {
    uint64_t steps = 0;
    for (const auto& [call, count] : counts_) {
      steps += count.made;
      if (options_.count_calls) {
        std::printf("%12s %8lu made %8lu worked\n", call.c_str(), count.made, count.worked);
      }
    }
    std::printf("parity: seed %lu, %lu sequences, %lu steps, %lu failed", options_.seed, sequences_,
                steps, failures_);
    if (compared_again_ != 0) std::printf(", %lu compared after a remount", compared_again_);
    std::printf("%s%s\n", run_.compare.movements ? "" : "; which times changed was not compared",
                run_.compare.access_times ? "" : "; atime was not compared");
    return failures_ == 0 && sequences_ > 0 ? 0 : 1;
  }

  const Options options_;
  RunOptions run_;
  CallCounts counts_;
  std::set<std::string> kinds_;
  std::map<std::string, Snapshot> kept_;
  uint64_t sequences_ = 0;
  uint64_t failures_ = 0;
  uint64_t compared_again_ = 0;
  uint64_t next_ = 0;
};

int ListDifferences() {
  for (const KnownAnswer& known : KnownAnswers()) {
    std::printf("%s\t%s\t%s\n", std::string(known.what).c_str(), std::string(known.answer).c_str(),
                std::string(known.why).c_str());
  }
  for (const NotCompared& rule : WhatIsNotCompared()) {
    std::printf("%s\tnot compared\t%s\n", std::string(rule.what).c_str(),
                std::string(rule.why).c_str());
  }
  return 0;
}

void AddOptions(CLI::App* app, Options* options) {
  app->add_option("--reference", options->sides.reference, "A directory of the reference");
  app->add_option("--mount", options->sides.mount, "A directory of the mount");
  app->add_option("--seed", options->seed, "Seed of the random sequences");
  app->add_option("--sequences", options->sequences, "How many");
  app->add_option("--first", options->first, "Number of the first sequence");
  app->add_option("--seconds", options->seconds, "Go on for this long instead");
  app->add_option("--steps", options->steps, "Steps of each sequence");
  app->add_option("--most-failures", options->most_failures, "Stop after this many kinds");
  app->add_option("--remount", options->remount, "A command that mounts anew");
  app->add_option("--remount-each", options->remount_each, "Sequences between remounts");
  app->add_option("--sabotage", options->sabotage, "Make the mount's side wrong on purpose");
  app->add_option("--replay", options->replays, "Scripts to run instead");
  app->add_flag("--trace", options->trace, "Print each step and its outcome");
  app->add_flag("--count-calls", options->count_calls, "Print how often each call was made");
  app->add_flag("--list-differences", options->list, "Print what is known to differ");
}

}  // namespace
}  // namespace memoirfs::parity

int main(int argc, char** argv) {
  using namespace memoirfs::parity;
  Options options;
  CLI::App app("Compares a mount with a reference file system, call by call.");
  AddOptions(&app, &options);
  CLI11_PARSE(app, argc, argv);
  if (options.list) return ListDifferences();
  if (::geteuid() == 0) ::setgroups(0, nullptr);  // another user has no groups of root
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(0);
  try {
    Suite suite(options);
    return options.replays.empty() ? suite.Random() : suite.Replay();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity: %s\n", error.what());
    return 2;
  }
}
