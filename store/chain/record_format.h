#pragma once

// The constants that writing and reading a record share. Private to store/chain.

#include <cstdint>
#include <string_view>

namespace memoirfs::chain {

inline constexpr uint64_t kRecordVersion = 1;  // of "fs"
inline constexpr int kMaxDetailDepth = 32;     // levels of "fs.detail"
inline constexpr int kMaxRecordDepth = 64;

inline constexpr const char* kSchemaVersion = "0.1";
inline constexpr const char* kHashAlgorithm = "sha-256";
inline constexpr const char* kCanonicalization = "rfc8785";
inline constexpr const char* kHashPrefix = "sha256:";
inline constexpr const char* kToolPrefix = "memoirfs.";
inline constexpr const char* kKindFlat = "flat";
inline constexpr const char* kKindTree = "tree";
inline constexpr size_t kMaxSummary = 200;  // UTF-16 code units

}  // namespace memoirfs::chain
