#pragma once

// A check that LevelDB lacks. It takes a record that runs past the end of a log or a manifest for
// one whose writer was stopped in the middle, and drops it and what follows without a word; a
// damaged length looks just the same. The checksum, which does not cover the length, tells the two
// apart: where the record is whole, it fits the bytes up to the true length.

#include <string>

#include "store/base/file_io.h"

namespace memoirfs::meta {

// kCorrupt when the last block of a log or manifest of the LevelDB database in `directory` holds a
// whole record whose length is damaged.
Status CheckLogTails(FileIo& io, const std::string& directory);

}  // namespace memoirfs::meta
