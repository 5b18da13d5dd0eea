#pragma once

// A copy of a directory tree that costs nothing until it is changed: reads come from `base`, which
// is never written; what is written, renamed or removed exists only in the copy and is gone with
// it. So a store can be recovered, verified and read by somebody who may not change it.
//
// Changed files lie in unnamed temporary files ($TMPDIR, else /tmp): a process that is killed
// leaves none behind. Syncs do nothing. Directories cannot be renamed (kNotSupported).
//
// Thread-safe, as FileIo says. `base` must not change meanwhile and must outlive the copy and its
// files.

#include <memory>

#include "store/base/file_io.h"

namespace memoirfs {

std::unique_ptr<FileIo> MakeOverlayIo(FileIo& base);

}  // namespace memoirfs
