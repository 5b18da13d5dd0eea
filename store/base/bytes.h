#pragma once

// Bytes as the rest of the store passes them: owned in a std::string, viewed through
// std::string_view (as LevelDB does), shared read-only through Buffer. Never assumed to be text.

#include <memory>
#include <string>
#include <string_view>

namespace memoirfs {

using Bytes = std::string;
using ByteView = std::string_view;

// Immutable bytes with shared ownership: what a verified read returns and caches keep.
using Buffer = std::shared_ptr<const Bytes>;

}  // namespace memoirfs
