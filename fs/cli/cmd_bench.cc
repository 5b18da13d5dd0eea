#include "fs/cli/bench/bench.h"
#include "fs/cli/commands.h"

namespace memoirfs::cli {
namespace {

constexpr unsigned kMaxRounds = 1000;
constexpr uint64_t kBigFile = 1ULL << 30;

struct Options {
  bench::BenchOptions bench;
  bool big = false;
};

int Run(Options options, const Invocation& invocation) {
  if (options.big) options.bench.big_bytes = kBigFile;
  options.bench.json = invocation.json;
  return bench::RunBench(options.bench);
}

}  // namespace

void AddBench(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure what programs do with files, on several directories side by side");
  command
      ->add_option("--against", options->bench.directories,
                   "A directory to measure on; give it several times, the first is the reference")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  command->add_option("--rounds", options->bench.rounds, "Rounds that count, after a warm-up")
      ->check(CLI::Range(1U, kMaxRounds))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--big", options->big, "Read a file of 1 GiB instead of 256 MiB");
  command->callback([&invocation, options] {
    invocation.run = [options](const Invocation& i, const Output&) { return Run(*options, i); };
  });
}

}  // namespace memoirfs::cli
