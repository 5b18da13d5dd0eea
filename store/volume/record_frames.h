#pragma once

// Where the records of a stream lie in packs and journals, whatever its segments have.

#include <map>

#include "store/base/file_io.h"
#include "store/base/types.h"
#include "store/journal/frame.h"

namespace memoirfs::volume {

// Of the records from `first` to `last`, those that are found. Reads footers, and journals whole:
// for repairs. Beside a writer, records that are appended meanwhile may be missed.
Result<std::map<Seq, journal::Location>> FindRecordFrames(FileIo& io, StreamId stream, Seq first,
                                                          Seq last);

}  // namespace memoirfs::volume
