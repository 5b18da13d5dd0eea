#include "fs/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "fs/cli/commands.h"
#include "fs/daemon/paths.h"

namespace memoirfs::cli {
namespace {

CLI::Option* Described(CLI::Option* option, const OptionSpec& spec) {
  if (!spec.type.empty()) option->type_name(spec.type);
  return option->required(spec.required);
}

// CLI11 takes "-1" for the greatest number.
std::string NotNegative(const std::string& text) {
  return text.starts_with('-') ? "must not be negative: " + text : std::string();
}

std::string NotEmpty(const std::string& text) {
  return text.empty() ? "must not be empty" : std::string();
}

CLI::Option* Number(CLI::Option* option, const OptionSpec& spec) {
  option->check(NotNegative);
  if (spec.most) option->check(CLI::Range(spec.least, *spec.most));
  return Described(option, spec);
}

}  // namespace

Result<std::string> Invocation::StorePath() const {
  if (!store.empty()) return daemon::AbsolutePath(store);
  ASSIGN_OR_RETURN(const std::string path, daemon::DefaultStorePath());
  return daemon::AbsolutePath(path);
}

Command Command::Add(const std::string& name, const std::string& help) {
  return {*app_.add_subcommand(name, help), invocation_};
}

void Command::RequireCommand() {
  app_.require_subcommand(1);
  // Options of the application may also follow the command.
  app_.fallthrough();
}

void Command::Flag(const std::string& name, const std::string& help, bool& value) {
  app_.add_flag(name, value, help);
}

void Command::Value(const OptionSpec& spec, std::string& value) {
  CLI::Option* option = Described(app_.add_option(spec.name, value, spec.help), spec);
  option->check(NotEmpty);
  if (!spec.choices.empty()) option->check(CLI::IsMember(spec.choices));
  if (!value.empty()) option->capture_default_str();
}

void Command::Value(const OptionSpec& spec, uint64_t& value) {
  Number(app_.add_option(spec.name, value, spec.help), spec)->capture_default_str();
}

void Command::Value(const OptionSpec& spec, std::optional<uint64_t>& value) {
  Number(app_.add_option(spec.name, value, spec.help), spec);
}

void Command::Directories(const OptionSpec& spec, std::vector<std::string>& values) {
  Described(app_.add_option(spec.name, values, spec.help), spec)->check(CLI::ExistingDirectory);
}

void Command::Runs(std::function<int(const Invocation&, const Output&)> work) {
  app_.callback([&invocation = invocation_, work = std::move(work)] { invocation.run = work; });
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>("Verified, recorded memory for agents as a file system.",
                                      "memoirfs")) {
  app_->set_version_flag("--version", "memoirfs " MEMOIRFS_VERSION);
  Command root(*app_, invocation_);
  root.RequireCommand();
  root.Value({.name = "--store",
              .help = "The store's directory; by default $MEMOIRFS_STORE, else "
                      "$XDG_DATA_HOME/memoirfs, else ~/.local/share/memoirfs",
              .type = "DIR"},
             invocation_.store);
  root.Flag("--json", "Print facts and errors as JSON", invocation_.json);
  AddCommands(root);
  app_->footer(
      "Exit codes: 0 done; 1 failed, or something is broken; 2 wrong usage; 3 nothing to "
      "verify.\nThe manual: man memoirfs");
}

CommandLine::~CommandLine() = default;

// CLI11 says of it only that a command is required.
std::optional<std::string> CommandLine::UnknownCommand(
    const std::vector<std::string>& words) const {
  if (words.empty() || words.front().starts_with('-')) return std::nullopt;
  const auto is_named = [&](const CLI::App* command) {
    return command->get_name() == words.front();
  };
  if (app_->get_subcommands(is_named).empty()) return words.front();
  return std::nullopt;
}

std::optional<int> CommandLine::Parse(std::vector<std::string> words) {
  if (const auto unknown = UnknownCommand(words)) {
    Output(false).Warn("'" + *unknown + "' is not a command. See: memoirfs --help");
    return kUsage;
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app_->parse(std::move(words));
  } catch (const CLI::ExtrasError&) {
    Output(false).Warn(fmt::format("not understood: {}. See: memoirfs {} --help",
                                   fmt::join(app_->remaining(true), " "),
                                   app_->get_subcommands().front()->get_name()));
    return kUsage;
  } catch (const CLI::Success& asked) {  // for help, or the version
    app_->exit(asked);
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    Output(false).Warn(fmt::format("{}. See: memoirfs --help", error.what()));
    return kUsage;
  }
  return std::nullopt;
}

}  // namespace memoirfs::cli
