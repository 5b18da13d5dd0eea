#include "fs/fuse/mountinfo.h"

#include <fstream>
#include <sstream>

namespace memoirfs::fuse {
namespace {

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// The kernel writes space, tab, newline, '#' and backslash as \ooo.
std::string Unescape(std::string_view field) {
  std::string out;
  for (size_t i = 0; i < field.size(); ++i) {
    const bool escaped = field[i] == '\\' && i + 3 < field.size() && IsOctal(field[i + 1]) &&
                         IsOctal(field[i + 2]) && IsOctal(field[i + 3]);
    if (!escaped) {
      out += field[i];
      continue;
    }
    const int value = (field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0');
    out += static_cast<char>(value);
    i += 3;
  }
  return out;
}

std::vector<std::string_view> SplitFields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const size_t space = line.find(' ');
    if (space != 0) fields.push_back(line.substr(0, space));
    if (space == std::string_view::npos) break;
    line.remove_prefix(space + 1);
  }
  return fields;
}

// "36 35 98:0 /root /mountpoint options [optional fields] - type source super-options"
std::optional<MountEntry> ParseLine(std::string_view line) {
  const std::vector<std::string_view> fields = SplitFields(line);
  for (size_t i = 6; i + 2 < fields.size(); ++i) {
    if (fields[i] != "-") continue;
    return MountEntry{std::string(fields[2]), Unescape(fields[4]), Unescape(fields[i + 1]),
                      Unescape(fields[i + 2])};
  }
  return std::nullopt;
}

}  // namespace

std::vector<MountEntry> ParseMountInfo(std::string_view text) {
  std::vector<MountEntry> entries;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (auto entry = ParseLine(text.substr(0, end))) entries.push_back(std::move(*entry));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return entries;
}

Result<std::vector<MountEntry>> ReadMountInfo() {
  std::ifstream file("/proc/self/mountinfo");
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Status(Code::kIo, "read /proc/self/mountinfo: is /proc mounted?");
  return ParseMountInfo(text.str());
}

Result<std::optional<MountEntry>> FindMount(const std::string& mountpoint) {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> entries, ReadMountInfo());
  std::optional<MountEntry> found;
  for (const MountEntry& entry : entries) {
    if (entry.mountpoint == mountpoint) found = entry;
  }
  return found;
}

}  // namespace memoirfs::fuse
