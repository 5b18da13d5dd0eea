#pragma once

#include <string>

#include "fs/cli/output.h"

namespace memoirfs::cli {

// Prints a report of verify (a JSON object's text) and returns the exit code that it stands for.
int PrintVerifyReport(const std::string& report, const Output& output);

}  // namespace memoirfs::cli
