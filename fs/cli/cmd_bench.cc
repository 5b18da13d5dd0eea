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

void AddBench(Command& root) {
  const auto options = std::make_shared<Options>();
  Command command =
      root.Add("bench", "Measure what programs do with files, on several directories side by side");
  command.Directories({.name = "--against",
                       .help = "A directory to measure on; give it several times, the first is "
                               "the reference. On a mount, what it wrote stays in the history",
                       .type = "DIR",
                       .required = true},
                      options->bench.directories);
  command.Value({.name = "--rounds",
                 .help = "Rounds that count, after a warm-up",
                 .type = "N",
                 .least = 1,
                 .most = kMaxRounds},
                options->bench.rounds);
  command.Flag("--big", "Read a file of 1 GiB instead of 256 MiB", options->big);
  command.Runs([options](const Invocation& i, const Output&) { return Run(*options, i); });
}

}  // namespace memoirfs::cli
