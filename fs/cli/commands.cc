#include "fs/cli/commands.h"

namespace memoirfs::cli {

void AddCommands(Command& root) {
  for (const auto add : {AddInit, AddAgent, AddMount, AddSupervise, AddUmount, AddStatus, AddVerify,
                         AddLog, AddCat, AddSync, AddFsck, AddBench}) {
    add(root);
  }
}

}  // namespace memoirfs::cli
