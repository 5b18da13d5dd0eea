// JSON and its canonical form: what parses has at most one canonical form, and that form and its
// ASCII spelling parse to it again.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "store/base/file_name.h"
#include "store/base/json.h"
#include "tests/fuzz/expect.h"

using memoirfs::Json;
using memoirfs::Result;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Json> value = memoirfs::ParseJson(text);
  if (!value.ok()) return 0;
  EXPECT(memoirfs::IsValidUtf8(text));
  const Result<std::string> canonical = memoirfs::Canonicalize(*value);
  if (!canonical.ok()) return 0;
  const Result<Json> again = memoirfs::ParseJson(*canonical);
  EXPECT(again.ok());
  EXPECT(memoirfs::Canonicalize(*again).value() == *canonical);
  const std::string ascii = memoirfs::CanonicalAscii(*value).value();
  EXPECT(std::all_of(ascii.begin(), ascii.end(), [](char c) { return c >= 0x20; }));
  EXPECT(memoirfs::Canonicalize(memoirfs::ParseJson(ascii).value()).value() == *canonical);
  return 0;
}
