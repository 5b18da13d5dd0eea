#include "fs/cli/cmd_bench.h"

#include <memory>

#include "fs/cli/bench/bench.h"

namespace memoirfs::cli {

void AddBenchCommand(CLI::App& app, int& exit_status) {
  constexpr unsigned kMaxRounds = 1000;
  CLI::App* command = app.add_subcommand(
      "bench", "Measure what programs do with files, on several directories side by side");
  const auto options = std::make_shared<bench::BenchOptions>();
  const auto big = std::make_shared<bool>(false);
  command
      ->add_option("--against", options->directories,
                   "A directory to measure on; give it several times, the first is the reference")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("--rounds", options->rounds, "Rounds that count, after one for warming up")
      ->check(CLI::Range(1U, kMaxRounds))
      ->capture_default_str();
  command->add_flag("--big", *big, "Read a file of 1 GiB instead of 256 MiB");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, big, &exit_status] {
    if (*big) options->big_bytes = 1ULL << 30;
    exit_status = bench::RunBench(*options);
  });
}

}  // namespace memoirfs::cli
