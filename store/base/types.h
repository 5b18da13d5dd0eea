#pragma once

// Strong types: swapped arguments do not compile. All are plain values, ordered and hashable.

#include <compare>
#include <cstdint>
#include <functional>

namespace memoirfs {

template <typename Tag, typename Rep>
struct Strong {
  Rep value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(v) {}
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;
};

// A chain and the tree that it describes: an agent's private memory, or a room. Counted from 1
// within a store and never reused.
using StreamId = Strong<struct StreamIdTag, uint32_t>;

// An inode within one stream: 1 is the root directory; never reused. Below 2^40, so that a stream
// and an inode fit one 64-bit node number (see NodeId in fs/vfs).
using InodeId = Strong<struct InodeIdTag, uint64_t>;

// A record's position in its chain: 1 for the genesis record.
using Seq = Strong<struct SeqTag, uint64_t>;

// Where a directory entry stands in its directory's order; handed out by the stream, increasing.
using Cookie = Strong<struct CookieTag, uint64_t>;

inline constexpr InodeId kRootInode{1};
inline constexpr int kInodeBits = 40;  // every InodeId fits

// Nanoseconds since the epoch (may be negative: times before 1970 are legal file times).
using Nanos = int64_t;

}  // namespace memoirfs

template <typename Tag, typename Rep>
struct std::hash<memoirfs::Strong<Tag, Rep>> {
  size_t operator()(const memoirfs::Strong<Tag, Rep>& v) const noexcept {
    return std::hash<Rep>{}(v.value);
  }
};
