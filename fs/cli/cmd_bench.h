#pragma once

#include <CLI/CLI.hpp>

namespace memoirfs::cli {

// Adds `bench` to the program. It needs no store and no daemon. `exit_status` is set when the
// command was chosen and has run; it must outlive the parsing.
void AddBenchCommand(CLI::App& app, int& exit_status);

}  // namespace memoirfs::cli
