#pragma once

#include <string>

#include "fs/cli/output.h"
#include "fs/daemon/request.h"

namespace memoirfs::cli {

// Verifies `store` and returns the report, a JSON object's text, with the problems as one member.
Result<std::string> AskForReport(const std::string& store, const daemon::Request& request);

// Prints such a report and returns the exit code that it stands for.
int PrintVerifyReport(const std::string& report, const Output& output);

}  // namespace memoirfs::cli
