#pragma once

// From a buffer's snapshot to what a commit takes: the id of the content and the objects that are
// new. Content up to a chunk is one flat object; longer content is a tree of chunks, where a chunk
// of zeros is a hole. Needs no lock of the file.

#include <vector>

#include "fs/vfs/file_buffer.h"
#include "store/volume/volume.h"

namespace memoirfs::vfs {

struct BuiltContent {
  ContentId id;
  // At most Volume::kMaxCommitBytes together: what is more went to a session of the snapshot.
  std::vector<volume::NewObject> objects;
};

// Sessions of the snapshot are to be finished before the commit.
Result<BuiltContent> BuildContent(volume::Volume& volume, BufferSnapshot& snapshot);

}  // namespace memoirfs::vfs
