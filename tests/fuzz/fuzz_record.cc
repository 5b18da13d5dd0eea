// Records: no line crashes the reader, and what it accepts can be sealed and read again. No random
// line has the right hash, so an object is also tried with its hash put right.

#include <cstdint>
#include <string_view>

#include "store/base/json.h"
#include "store/chain/record.h"
#include "tests/fuzz/expect.h"
#include "tests/support/chain_samples.h"

using memoirfs::Json;
using memoirfs::Result;
using memoirfs::chain::ParsedRecord;
using memoirfs::chain::SealedRecord;

namespace {

void CheckLine(std::string_view line) {
  const Result<ParsedRecord> parsed = memoirfs::chain::ParseRecord(line);
  if (!parsed.ok()) return;
  const Result<SealedRecord> sealed = memoirfs::chain::SealRecord(
      memoirfs::test::SampleContext(), memoirfs::chain::Head{}, parsed->change, parsed->ts);
  // A detail may be deeper than one that is written, a line longer.
  if (!sealed.ok()) return;
  EXPECT(memoirfs::chain::ParseRecord(sealed->line).value().change == parsed->change);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  CheckLine(line);
  Result<Json> record = memoirfs::ParseJson(line);
  if (!record.ok() || !record->is_object()) return 0;
  Json& integrity = (*record)["integrity"];
  if (!integrity.is_object()) return 0;
  integrity.erase("hash");
  const Result<std::string> canonical = memoirfs::Canonicalize(*record);
  if (!canonical.ok()) return 0;
  integrity["hash"] = memoirfs::Sha256::Of(*canonical).ToHex();
  CheckLine(memoirfs::CanonicalAscii(*record).value());
  return 0;
}
