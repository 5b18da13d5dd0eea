// The footer of a pack: what is read can be written again and says the same. The trailer's
// checksum and the footer's digest are put right, for no random bytes have them.

#include <algorithm>

#include "store/base/coding.h"
#include "store/journal/footer.h"
#include "tests/fuzz/frame_file.h"

using namespace memoirfs;           // NOLINT: a test
using namespace memoirfs::journal;  // NOLINT: a test

namespace {

constexpr PackId kPack{3};
constexpr size_t kTrailerSize = 64;
constexpr size_t kChecksumAt = 52;
constexpr size_t kDigestAt = 16;

void CheckFooter(ByteView bytes) {
  testing::SimIo io;
  const auto file = testing::FileOf(io, bytes);
  Result<PackContents> footer = ReadFooter(*file, kPack);
  if (!footer.ok()) return;
  EXPECT(footer->frames_end <= bytes.size());
  EXPECT(WriteFooter(*file, kPack, footer->frames_end, *footer).ok());
  const Result<PackContents> again = ReadFooter(*file, kPack);
  EXPECT(again.ok());
  std::sort(footer->objects.begin(), footer->objects.end());
  EXPECT(again->frames_end == footer->frames_end);
  EXPECT(again->objects == footer->objects);
  EXPECT(again->records == footer->records);
  EXPECT(again->states == footer->states);
  EXPECT(again->damaged == footer->damaged);
}

// The input ends in a trailer whose sizes say that everything from `frames_end` on is footer.
Bytes Mended(ByteView bytes) {
  if (bytes.size() < kTrailerSize) return Bytes(bytes);
  Bytes mended(bytes);
  const size_t trailer_at = bytes.size() - kTrailerSize;
  Decoder in(bytes.substr(trailer_at));
  const uint64_t frames_end = std::min<uint64_t>(in.U64(), trailer_at);
  const ByteView body = bytes.substr(frames_end, trailer_at - frames_end);
  mended.replace(trailer_at, kDigestAt, Encoder().U64(frames_end).U64(body.size()).Take());
  mended.replace(trailer_at + kDigestAt, Digest::kSize, Sha256::Of(body).View());
  const uint32_t checksum = Crc32c(ByteView(mended).substr(trailer_at, kChecksumAt));
  return mended.replace(trailer_at + kChecksumAt, sizeof(checksum), Encoder().U32(checksum).Take());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteView bytes(reinterpret_cast<const char*>(data), size);
  CheckFooter(bytes);
  CheckFooter(Mended(bytes));
  return 0;
}
