#pragma once

// Where the files of frames lie in a store.

#include <cstdint>
#include <string>

namespace memoirfs::journal {

inline constexpr char kJournalDirectory[] = "journal";
inline constexpr char kPackDirectory[] = "packs";
inline constexpr char kStagingDirectory[] = "staging";
inline constexpr char kQuarantineDirectory[] = "quarantine";
inline constexpr char kTemporarySuffix[] = ".tmp";

// "<directory>/<20 digits><suffix>": names sort as numbers.
std::string NumberedPath(const char* directory, uint64_t number, const char* suffix);

// A bulk pack that is not finished.
std::string StagedBulkPath(uint64_t number);

}  // namespace memoirfs::journal
