#pragma once

// Text from outside (names, paths, what a store or another program says) for terminals and logs.

#include <string>
#include <string_view>

namespace memoirfs {

// `text` on one line that shows what is there: what a terminal would obey and what reorders or
// breaks the line it stands in becomes an escape. Bytes below 0x20, 0x7f and what is not UTF-8 are
// \xNN; C1 controls, bidirectional controls and the line separators \uNNNN. A backslash is \\, so
// that no text looks like an escaped other one.
std::string Printable(std::string_view text);

}  // namespace memoirfs
