#include "store/journal/pack.h"

#include <algorithm>
#include <utility>

#include "store/journal/footer.h"

namespace memoirfs::journal {
namespace {

std::string RangeText(const ByteRange& range) {
  return "bytes " + std::to_string(range.offset) + " to " +
         std::to_string(range.offset + range.length);
}

// Compares two lists of one kind of frames, where nothing is damaged that would explain it.
template <typename Listed>
void Compare(PackId pack, std::string_view kind, const std::vector<Listed>& in_footer,
             const std::vector<Listed>& found, std::vector<std::string>& problems) {
  if (in_footer == found) return;
  problems.push_back(PackPath(pack) + ": footer: lists " + std::to_string(in_footer.size()) + " " +
                     std::string(kind) + ", found " + std::to_string(found.size()) +
                     " in the frames, and they are not the same");
}

void CheckAgainstFooter(PackId pack, const PackContents& in_footer, const PackContents& found,
                        std::vector<std::string>& problems) {
  Compare(pack, "objects", in_footer.objects, found.objects, problems);
  Compare(pack, "records", in_footer.records, found.records, problems);
  Compare(pack, "states", in_footer.states, found.states, problems);
  Compare(pack, "damaged ranges", in_footer.damaged, found.damaged, problems);
}

}  // namespace

Result<PackContents> ReadPackContents(FileIo& io, PackId pack, bool* footer_damaged) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(PackPath(pack), OpenMode::kRead));
  Result<PackContents> footer = ReadFooter(*file, pack);
  if (footer_damaged != nullptr) *footer_damaged = footer.code() == Code::kCorrupt;
  if (footer.ok()) return footer;
  if (footer.code() != Code::kCorrupt) return footer.status();
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return CollectContents(*file, pack, size);
}

Result<std::vector<std::string>> VerifyPack(FileIo& io, PackId pack) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(PackPath(pack), OpenMode::kRead));
  Result<PackContents> footer = ReadFooter(*file, pack);
  if (!footer.ok() && footer.code() != Code::kCorrupt) return footer.status();
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  ASSIGN_OR_RETURN(const PackContents found,
                   CollectContents(*file, pack, footer.ok() ? footer->frames_end : size));
  std::vector<std::string> problems;
  const PackContents in_footer = footer.ok() ? *std::move(footer) : PackContents{};
  for (const ByteRange& range : found.damaged) {
    const auto& known = in_footer.damaged;
    if (std::find(known.begin(), known.end(), range) != known.end()) continue;
    problems.push_back(PackPath(pack) + ": " + RangeText(range) +
                       ": expected frames, found none that is valid");
  }
  if (!footer.ok()) {
    problems.push_back(footer.status().message());
  } else if (problems.empty()) {
    CheckAgainstFooter(pack, in_footer, found, problems);
  }
  return problems;
}

}  // namespace memoirfs::journal
