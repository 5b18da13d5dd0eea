#include "fs/cli/commands.h"
#include "fs/daemon/paths.h"

namespace memoirfs::cli {

Result<std::string> Invocation::StorePath() const {
  if (!store.empty()) return daemon::AbsolutePath(store);
  ASSIGN_OR_RETURN(const std::string path, daemon::DefaultStorePath());
  return daemon::AbsolutePath(path);
}

std::unique_ptr<CLI::App> MakeApplication(Invocation& invocation) {
  auto app = std::make_unique<CLI::App>("Verified, recorded memory for agents as a file system.",
                                        "memoirfs");
  app->set_version_flag("--version", "memoirfs " MEMOIRFS_VERSION);
  app->require_subcommand(1);
  // Options of the application may also follow the command.
  app->fallthrough();
  app->add_option("--store", invocation.store,
                  "The store's directory; by default $MEMOIRFS_STORE, else "
                  "$XDG_DATA_HOME/memoirfs, else ~/.local/share/memoirfs")
      ->type_name("DIR");
  app->add_flag("--json", invocation.json, "Print facts and errors as JSON");
  for (const auto add : {AddInit, AddAgent, AddMount, AddUmount, AddStatus, AddVerify, AddLog,
                         AddCat, AddSync, AddFsck, AddBench}) {
    add(*app, invocation);
  }
  app->footer(
      "Exit codes: 0 done; 1 failed, or something is broken; 2 wrong usage; 3 nothing to "
      "verify.\nThe manual: man memoirfs");
  return app;
}

}  // namespace memoirfs::cli
