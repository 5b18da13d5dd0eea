#include "store/base/file_name.h"

#include <utf8.h>

#include <algorithm>

namespace memoirfs {
namespace {

bool IsAsciiAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void AppendEscaped(std::string& out, unsigned char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

}  // namespace

bool IsValidUtf8(std::string_view text) { return utf8::is_valid(text.begin(), text.end()); }

std::string EscapeInvalidUtf8(std::string_view raw) {
  std::string out;
  while (!raw.empty()) {
    const auto valid_end = utf8::find_invalid(raw.begin(), raw.end());
    for (auto it = raw.begin(); it != valid_end; ++it) {
      if (*it == '\\') out += '\\';
      out += *it;
    }
    raw.remove_prefix(static_cast<size_t>(valid_end - raw.begin()));
    if (raw.empty()) break;
    AppendEscaped(out, static_cast<unsigned char>(raw.front()));
    raw.remove_prefix(1);
  }
  return out;
}

Status CheckFileName(std::string_view name) {
  if (name.size() > kMaxNameBytes)
    return Status(Code::kNameTooLong, "a name has at most 255 bytes");
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos ||
      name.find('\0') != name.npos) {
    return Status(Code::kInvalidArgument, "not a name of a directory entry");
  }
  if (!IsValidUtf8(name)) return Status(Code::kIllegalName, "a name must be valid UTF-8");
  return {};
}

Status CheckAgentName(std::string_view name) {
  const bool chars_fit = std::all_of(name.begin(), name.end(), [](char c) {
    return IsAsciiAlnum(c) || c == '.' || c == '_' || c == '-';
  });
  if (name.empty() || name.size() > 64 || !chars_fit || !IsAsciiAlnum(name.front())) {
    return Status(Code::kInvalidArgument,
                  "an agent's name has 1 to 64 of the ASCII letters, digits, '.', '_' and '-', and "
                  "starts with a letter or a digit; not: '" +
                      EscapeInvalidUtf8(name) + "'");
  }
  return {};
}

}  // namespace memoirfs
