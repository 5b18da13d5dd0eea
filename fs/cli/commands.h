#pragma once

// Every command of `memoirfs`. A file cmd_<name>.cc holds one: it adds its subcommand, options and
// callback to the application; the callback says what is to run, main() runs it. A new command is
// one such file, one line here, one in registry.cc, and a section in packaging/man/memoirfs.1.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "fs/cli/output.h"
#include "store/base/status.h"

namespace memoirfs::cli {

// What the command line said; filled while it is parsed.
struct Invocation {
  std::string store;  // as given with --store; empty: the default
  bool json = false;
  // Set by the chosen command: does its work and returns the exit code.
  std::function<int(const Invocation&, const Output&)> run;

  // The store as an absolute path.
  Result<std::string> StorePath() const;
};

void AddInit(CLI::App& app, Invocation& invocation);
void AddAgent(CLI::App& app, Invocation& invocation);
void AddMount(CLI::App& app, Invocation& invocation);
void AddUmount(CLI::App& app, Invocation& invocation);
void AddStatus(CLI::App& app, Invocation& invocation);
void AddVerify(CLI::App& app, Invocation& invocation);
void AddLog(CLI::App& app, Invocation& invocation);
void AddCat(CLI::App& app, Invocation& invocation);
void AddSync(CLI::App& app, Invocation& invocation);
void AddFsck(CLI::App& app, Invocation& invocation);
void AddBench(CLI::App& app, Invocation& invocation);

// The application with all of them; options and commands refer to `invocation`.
std::unique_ptr<CLI::App> MakeApplication(Invocation& invocation);

}  // namespace memoirfs::cli
