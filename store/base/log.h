#pragma once

// The process's log: one line an event, "<level> <site> <text>", to stderr or a file. A site is a
// short constant such as "cas.digest-mismatch" that names the place in the code, so that a line in
// a log leads there. The text may hold names from outside: it is written as Printable shows it. No
// content of files and no secret is ever logged.
// Thread-safe. Never call it with a lock of rank 1 to 6 held that a log writer could need (none
// does: the log is a leaf).

#include <string>
#include <string_view>

#include "store/base/status.h"

namespace memoirfs {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

void Log(LogLevel level, std::string_view site, std::string_view text);

// Where lines go from now on: stderr at first. The file is created 0600 and appended to.
Status LogToFile(const std::string& path);
void SetLogLevel(LogLevel least);

}  // namespace memoirfs
