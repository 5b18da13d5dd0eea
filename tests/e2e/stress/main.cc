// Many processes and threads on the same names, with invariants that are checked.

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tests/e2e/stress/scenarios.h"

namespace memoirfs::stress {
namespace {

struct Options {
  Crew crew;
  std::vector<std::string> only;
  bool keep = false;
};

// Runs in a fresh folder of each directory, which goes away when all was well.
bool RunScenario(const Scenario& scenario, const Options& options) {
  Crew crew = options.crew;
  for (std::string& directory : crew.directories) {
    directory += "/" + std::string(scenario.name) + "-" + std::to_string(::getpid());
    std::filesystem::create_directory(directory);
  }
  try {
    const uint64_t done = scenario.run(crew);
    std::printf("%-10s %lu operations by %u workers: %s\n", std::string(scenario.name).c_str(),
                done, crew.workers(), std::string(scenario.what).c_str());
    for (const std::string& directory : crew.directories) std::filesystem::remove_all(directory);
    return true;
  } catch (const std::exception& error) {
    std::printf("%s: VIOLATED, seed %lu: %s\n", std::string(scenario.name).c_str(), crew.seed,
                error.what());
    return false;
  }
}

int Main(const Options& options) {
  unsigned run = 0;
  unsigned failed = 0;
  for (const Scenario& scenario : Scenarios()) {
    const auto& only = options.only;
    if (!only.empty() && std::find(only.begin(), only.end(), scenario.name) == only.end()) continue;
    ++run;
    if (!RunScenario(scenario, options)) ++failed;
  }
  std::printf("stress: seed %lu, %u scenarios, %u failed\n", options.crew.seed, run, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}

void AddOptions(CLI::App* app, Options* options) {
  Crew& crew = options->crew;
  app->add_option("directories", crew.directories, "Where the workers work")->required();
  app->add_option("--scenario", options->only, "Run these only");
  app->add_option("--processes", crew.processes, "Processes at once");
  app->add_option("--threads", crew.threads, "Threads of each");
  app->add_option("--rounds", crew.rounds, "Rounds of each thread");
  app->add_option("--seed", crew.seed, "Seed of the choices");
  app->add_option("--stall-seconds", crew.stall_seconds,
                  "Without progress for so long: a deadlock");
  app->add_option("--stall-command", crew.stall_command, "Run at a deadlock");
}

}  // namespace
}  // namespace memoirfs::stress

int main(int argc, char** argv) {
  memoirfs::stress::Options options;
  CLI::App app("Many processes and threads on the same names.");
  AddOptions(&app, &options);
  CLI11_PARSE(app, argc, argv);
  try {
    return memoirfs::stress::Main(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stress: %s\n", error.what());
    return 2;
  }
}
