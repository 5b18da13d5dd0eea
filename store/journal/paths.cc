#include "store/journal/paths.h"

#include "store/journal/journal.h"
#include "store/journal/pack.h"

namespace memoirfs::journal {

std::string NumberedPath(const char* directory, uint64_t number, const char* suffix) {
  constexpr size_t kDigits = 20;
  const std::string digits = std::to_string(number);
  return std::string(directory) + "/" + std::string(kDigits - digits.size(), '0') + digits + suffix;
}

std::string JournalPath(uint64_t number) { return NumberedPath(kJournalDirectory, number, ".log"); }

std::string PackPath(PackId pack) {
  return NumberedPath(kPackDirectory, pack.number, pack.bulk ? ".bulk" : ".pack");
}

std::optional<PackId> PackOfName(const std::string& name) {
  const PackId pack{std::strtoull(name.c_str(), nullptr, 10), name.ends_with(".bulk")};
  if (PackPath(pack) != std::string(kPackDirectory) + "/" + name) return std::nullopt;
  return pack;
}

Result<std::vector<PackId>> ListPacks(FileIo& io) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, io.List(kPackDirectory));
  std::vector<PackId> packs;
  for (const std::string& name : names) {
    if (const auto pack = PackOfName(name)) packs.push_back(*pack);
  }
  return packs;
}

std::string StagedBulkPath(uint64_t number) {
  return NumberedPath(kStagingDirectory, number, ".bulk");
}

}  // namespace memoirfs::journal
