#include "store/base/printable.h"

#include <fmt/format.h>
#include <utf8.h>

namespace memoirfs {
namespace {

bool IsControl(uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

// Marks, embeddings, overrides and isolates: they show a name in another order than it has.
bool IsBidiControl(uint32_t c) {
  return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

bool IsLineSeparator(uint32_t c) { return c == 0x2028 || c == 0x2029; }

void AppendByte(unsigned char byte, std::string* out) { *out += fmt::format("\\x{:02x}", byte); }

// `bytes` is the character as it is encoded.
void AppendCharacter(uint32_t c, std::string_view bytes, std::string* out) {
  if (c == '\\') {
    *out += "\\\\";
  } else if (!IsControl(c) && !IsBidiControl(c) && !IsLineSeparator(c)) {
    *out += bytes;
  } else if (c < 0x80) {
    AppendByte(static_cast<unsigned char>(c), out);
  } else {
    *out += fmt::format("\\u{:04x}", c);
  }
}

void AppendValid(std::string_view text, std::string* out) {
  for (auto next = text.begin(); next != text.end();) {
    const auto start = next;
    const uint32_t c = utf8::unchecked::next(next);
    AppendCharacter(c, std::string_view(start, next), out);
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  while (true) {
    const auto valid =
        static_cast<size_t>(utf8::find_invalid(text.begin(), text.end()) - text.begin());
    AppendValid(text.substr(0, valid), &out);
    text.remove_prefix(valid);
    if (text.empty()) return out;
    AppendByte(static_cast<unsigned char>(text.front()), &out);
    text.remove_prefix(1);
  }
}

}  // namespace memoirfs
