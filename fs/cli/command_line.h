#pragma once

// Commands and their options, for the files cmd_<name>.cc: the only door to CLI11, whose headers
// take longer to compile than all of a command. Not thread-safe; used while the program starts.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/cli/output.h"
#include "store/base/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace memoirfs::cli {

// What the command line said; filled while it is parsed.
struct Invocation {
  std::string store;  // as given with --store; empty: the default
  bool json = false;
  // Set by the chosen command: does its work and returns the exit code.
  std::function<int(const Invocation&, const Output&)> run;

  // The store as an absolute path.
  Result<std::string> StorePath() const;
  // What a suggested command needs behind it to mean the same store: " --store DIR", or nothing.
  std::string StoreOption() const { return store.empty() ? "" : " --store " + store; }
};

// An option ("--agent"), or an argument by position ("NAME").
struct OptionSpec {
  std::string name;
  std::string help;
  std::string type = {};  // how --help calls the value; empty: TEXT or UINT
  bool required = false;
  std::vector<std::string> choices = {};  // of a text; empty: any
  uint64_t least = 0;                     // of a number, with `most`
  std::optional<uint64_t> most = {};
};

// One command while the application is put together. What it is given to fill must live as long as
// the parsing; Runs() may keep it alive.
class Command {
 public:
  Command(CLI::App& app, Invocation& invocation) : app_(app), invocation_(invocation) {}

  Command Add(const std::string& name, const std::string& help);
  // One of its own commands must follow it.
  void RequireCommand();

  void Flag(const std::string& name, const std::string& help, bool& value);
  // A value that is set before is shown by --help as the default.
  void Value(const OptionSpec& spec, std::string& value);
  void Value(const OptionSpec& spec, uint64_t& value);
  void Value(const OptionSpec& spec, std::optional<uint64_t>& value);
  // May be given several times; each must be an existing directory.
  void Directories(const OptionSpec& spec, std::vector<std::string>& values);

  void Runs(std::function<int(const Invocation&, const Output&)> work);

 private:
  CLI::App& app_;
  Invocation& invocation_;
};

// The program with all its commands (commands.h).
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Fills invocation() from the words after the program's name. An exit code when there is nothing
  // to run: help or version was asked for, or the usage is wrong; then stdout or stderr said so.
  std::optional<int> Parse(std::vector<std::string> words);
  const Invocation& invocation() const { return invocation_; }

 private:
  std::optional<std::string> UnknownCommand(const std::vector<std::string>& words) const;

  Invocation invocation_;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace memoirfs::cli
