#pragma once

// The content of .memoir/chain.jsonl: a stream's segments, one after another, as they are on the
// disk. What they hold is durable.

#include "store/base/bytes.h"
#include "store/base/file_io.h"
#include "store/base/status.h"
#include "store/base/types.h"

namespace memoirfs::vfs {

Result<uint64_t> ChainSize(FileIo& io, StreamId stream);
Result<Bytes> ReadChain(FileIo& io, StreamId stream, uint64_t offset, size_t size);

}  // namespace memoirfs::vfs
