#pragma once

#include <memory>

#include "store/base/file_io.h"

namespace memoirfs {

// An empty file without a name, in $TMPDIR, else /tmp; gone when it is closed.
Result<std::unique_ptr<File>> OpenTemporaryFile();

}  // namespace memoirfs
