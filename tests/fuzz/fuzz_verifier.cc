// The chain verifier, and the reader of checkpoints, on any lines.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "store/chain/verifier.h"
#include "tests/fuzz/expect.h"

using memoirfs::Result;
using memoirfs::chain::ChainVerifier;
using memoirfs::chain::Checkpoint;

namespace {

void CheckCheckpoint(std::string_view line) {
  const Result<Checkpoint> checkpoint = Checkpoint::FromLine(line);
  if (!checkpoint.ok()) return;
  EXPECT(Checkpoint::FromLine(checkpoint->ToLine()).value() == *checkpoint);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  ChainVerifier verifier;
  uint64_t lines = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    verifier.Add(line);
    CheckCheckpoint(line);
    ++lines;
  }
  EXPECT(verifier.count() <= lines);
  EXPECT(verifier.problems().size() <= 100);
  EXPECT(verifier.chain_intact() || !verifier.intact());
  return 0;
}
