// Intents from bytes: whatever decodes must encode to the same bytes.

#include "store/volume/intent.h"
#include "tests/fuzz/expect.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const memoirfs::ByteView bytes(reinterpret_cast<const char*>(data), size);
  const auto intent = memoirfs::volume::Intent::Decode(bytes);
  if (intent.ok()) EXPECT(intent->Encode() == bytes);
  return 0;
}
