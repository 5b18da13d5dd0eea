#pragma once

// A Node of the vfs in the words of stat(2) and of libfuse, and what the kernel may cache of it.

#include <fuse_lowlevel.h>

#include "fs/vfs/vfs.h"

namespace memoirfs::fuse {

// What stat(2) recommends for reading and writing: cat and cp use it as their buffer, and it is
// the size of the kernel's usual readahead.
inline constexpr uint32_t kPreferredIoSize = 128 * 1024;

struct stat StatOf(const vfs::Node& node);

// For how many seconds the kernel may use the attributes of this node without asking. A day for
// what changes only through this mount or with a notification; 0 where the view says so.
double CacheSeconds(const vfs::Node& node);

// A name, to be remembered for a day: every change of a name is announced.
fuse_entry_param EntryOf(const vfs::Node& node);

// The answer "there is no such name", to be remembered.
fuse_entry_param MissingEntry();

// The change that a SETATTR asks for; `to_set` are the FUSE_SET_ATTR bits.
vfs::AttributeChange ChangeOf(const struct stat& wanted, int to_set);

}  // namespace memoirfs::fuse
