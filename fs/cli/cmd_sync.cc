#include "fs/cli/commands.h"
#include "fs/cli/store_access.h"

namespace memoirfs::cli {
namespace {

int Run(const Invocation& invocation, const Output& output) {
  const auto sync = [&]() -> Result<std::string> {
    ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
    return Ask(store, {.operation = daemon::Operation::kSync}, Access::kWrite);
  };
  const Result<std::string> done = sync();
  if (!done.ok()) return output.Fail("sync", done.status());
  output.Json(*done);
  return kSuccess;
}

}  // namespace

void AddSync(Command& root) {
  Command command = root.Add("sync", "Save what is open and make all of it durable");
  command.Runs(Run);
}

}  // namespace memoirfs::cli
