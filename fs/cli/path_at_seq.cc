#include "fs/cli/path_at_seq.h"

#include <charconv>

namespace memoirfs::cli {

std::pair<std::string, std::optional<uint64_t>> SplitPathAtSeq(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0) return {text, std::nullopt};
  const char* const begin = text.data() + at + 1;
  const char* const end = text.data() + text.size();
  uint64_t seq = 0;
  const auto [stopped, error] = std::from_chars(begin, end, seq);
  if (begin == end || error != std::errc() || stopped != end) return {text, std::nullopt};
  return {text.substr(0, at), seq};
}

}  // namespace memoirfs::cli
