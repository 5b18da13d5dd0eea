// `memoirfs bench` as a program of its own: for trials without the rest of the product.

#include "fs/cli/cmd_bench.h"

int main(int argc, char** argv) {
  CLI::App app("Measures directories side by side");
  app.require_subcommand(1);
  int exit_status = 0;
  memoirfs::cli::AddBenchCommand(app, exit_status);
  CLI11_PARSE(app, argc, argv);
  return exit_status;
}
