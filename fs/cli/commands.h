#pragma once

// Every command of `memoirfs`. A file cmd_<name>.cc holds one: it adds its command, its options and
// what is to run; main() runs it. A new command is one such file, one line here, one in
// commands.cc, and a section in packaging/man/memoirfs.1.

#include "fs/cli/command_line.h"

namespace memoirfs::cli {

void AddInit(Command& root);
void AddAgent(Command& root);
void AddMount(Command& root);
void AddSupervise(Command& root);
void AddUmount(Command& root);
void AddStatus(Command& root);
void AddVerify(Command& root);
void AddLog(Command& root);
void AddCat(Command& root);
void AddSync(Command& root);
void AddFsck(Command& root);
void AddBench(Command& root);

// All of them, in the order in which --help lists them.
void AddCommands(Command& root);

}  // namespace memoirfs::cli
