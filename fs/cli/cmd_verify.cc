#include "fs/cli/commands.h"
#include "fs/cli/verify_report.h"

namespace memoirfs::cli {
namespace {

struct Options {
  std::string agent;
  std::string level = "objects";
};

int Run(const Options& options, const Invocation& invocation, const Output& output) {
  const auto verify = [&]() -> Result<std::string> {
    ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
    daemon::Request request{.operation = daemon::Operation::kVerify};
    if (!options.agent.empty()) request.agent = options.agent;
    ASSIGN_OR_RETURN(request.level, daemon::LevelOfName(options.level));
    return AskForReport(store, request);
  };
  const Result<std::string> report = verify();
  if (!report.ok()) return output.Fail("verify", report.status());
  return PrintVerifyReport(*report, output);
}

}  // namespace

void AddVerify(Command& root) {
  const auto options = std::make_shared<Options>();
  Command command = root.Add("verify", "Check chains, index and every stored byte");
  command.Value({.name = "--agent", .help = "Only this agent", .type = "NAME"}, options->agent);
  command.Value({.name = "--level",
                 .help = "How much: heads, chains, index or objects; each includes those before it",
                 .type = "LEVEL",
                 .choices = {"heads", "chains", "index", "objects"}},
                options->level);
  command.Runs([options](const Invocation& i, const Output& o) { return Run(*options, i, o); });
}

}  // namespace memoirfs::cli
