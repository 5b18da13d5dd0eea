#include "store/base/json_writer.h"

#include <utf8.h>

#include <algorithm>
#include <cassert>

#include "store/base/file_name.h"

namespace memoirfs {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr size_t kTypicalSize = 1536;

bool NeedsEscape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }
bool IsBeyondAscii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

void AppendUnit(uint32_t unit, std::string* out) {
  *out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) *out += kHexDigits[(unit >> shift) & 15];
}

void AppendEscape(char c, std::string* out) {
  switch (c) {
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    case '\b':
      *out += "\\b";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\f':
      *out += "\\f";
      return;
    case '\r':
      *out += "\\r";
      return;
    default:
      AppendUnit(static_cast<unsigned char>(c), out);
  }
}

void AppendCodePoint(uint32_t point, std::string* out) {
  if (point < 0x10000) return AppendUnit(point, out);
  const uint32_t rest = point - 0x10000;
  AppendUnit(0xd800 + (rest >> 10), out);
  AppendUnit(0xdc00 + (rest & 0x3ff), out);
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  *out += '"';
  auto start = text.begin();
  while (true) {
    const auto stop = std::find_if(start, text.end(), NeedsEscape);
    out->append(start, stop);
    if (stop == text.end()) break;
    AppendEscape(*stop, out);
    start = stop + 1;
  }
  *out += '"';
}

void AppendAsAscii(std::string_view canonical, std::string* out) {
  auto start = canonical.begin();
  while (true) {
    auto stop = std::find_if(start, canonical.end(), IsBeyondAscii);
    out->append(start, stop);
    if (stop == canonical.end()) return;
    AppendCodePoint(static_cast<uint32_t>(utf8::unchecked::next(stop)), out);
    start = stop;
  }
}

CanonicalWriter::CanonicalWriter() : last_keys_(1) {
  out_.reserve(kTypicalSize);
  out_ += '{';
}

void CanonicalWriter::Key(std::string_view key) {
  assert(last_keys_.back() < key);
  if (!last_keys_.back().empty()) out_ += ',';
  last_keys_.back() = key;
  out_ += '"';
  out_ += key;
  out_ += "\":";
}

void CanonicalWriter::Fail(Code code, std::string_view key, std::string_view what) {
  if (!failure_.ok()) return;
  failure_ = Status(code, std::string(key).append(" ").append(what));
}

void CanonicalWriter::BeginObject(std::string_view key) {
  Key(key);
  out_ += '{';
  last_keys_.emplace_back();
}

void CanonicalWriter::EndObject() {
  out_ += '}';
  last_keys_.pop_back();
}

void CanonicalWriter::String(std::string_view key, std::string_view value) {
  if (!IsValidUtf8(value)) Fail(Code::kInvalidArgument, key, "is not valid UTF-8");
  Key(key);
  AppendJsonString(value, &out_);
}

void CanonicalWriter::Unsigned(std::string_view key, uint64_t value) {
  if (value > kMaxJsonInteger) Fail(Code::kTooLarge, key, "is not below 2^53");
  Key(key);
  out_ += std::to_string(value);
}

void CanonicalWriter::Signed(std::string_view key, int64_t value) {
  constexpr auto kLimit = static_cast<int64_t>(kMaxJsonInteger);
  if (value > kLimit || value < -kLimit) Fail(Code::kTooLarge, key, "is not below 2^53");
  Key(key);
  out_ += std::to_string(value);
}

void CanonicalWriter::True(std::string_view key) { Raw(key, "true"); }

void CanonicalWriter::Raw(std::string_view key, std::string_view json) {
  Key(key);
  out_ += json;
}

Result<std::string> CanonicalWriter::Finish() {
  if (!failure_.ok()) return failure_;
  EndObject();
  return std::move(out_);
}

}  // namespace memoirfs
