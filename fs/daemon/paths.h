#pragma once

// Where things are outside the store: the store a user means by default, and the state directory
// that keeps what must not lie beside the chains it vouches for.

#include <string>

#include "store/base/status.h"

namespace memoirfs::daemon {

// $MEMOIRFS_STORE, else ${XDG_DATA_HOME:-~/.local/share}/memoirfs. kNotFound without a home.
Result<std::string> DefaultStorePath();

// `path` made absolute, its parents' links resolved where they exist. The last part stays as it
// is: a store is a directory itself, never a link to one.
Result<std::string> AbsolutePath(const std::string& path);

// ${XDG_STATE_HOME:-~/.local/state}/memoirfs/<store_id>, made 0700 where it does not exist.
// It belongs to one place of the store, whatever its names are (a bind mount gives it another), and
// moves along when the store was moved. A copy of a store
// has the same id, goes its own way and must not be taken for it: it gets a directory of its own,
// <store_id>-<digest of its path>. kInvalidArgument for an id that is not a plain name.
Result<std::string> StateDirectory(const std::string& store_id, const std::string& store_path);

// Makes `path` and its missing parents, 0700.
Status MakeDirectories(const std::string& path);

}  // namespace memoirfs::daemon
