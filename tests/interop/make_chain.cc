// Writes a chain of 100 records, of all operations, through the store's segments:
// make_chain STORE (a new directory). The chain is STORE/chains/7/*.jsonl.

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "store/chain/segment.h"
#include "tests/support/chain_samples.h"

namespace {

using memoirfs::Status;

Status MakeChain(const std::string& root) {
  using memoirfs::chain::SegmentWriter;
  constexpr memoirfs::chain::SegmentOptions kSmallSegments{64U << 10};
  std::filesystem::create_directory(root);
  ASSIGN_OR_RETURN(const std::unique_ptr<memoirfs::FileIo> io, memoirfs::OpenRealIo(root));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<SegmentWriter> writer,
      SegmentWriter::Open(*io, memoirfs::test::SampleContext().stream, kSmallSegments, nullptr));
  for (const auto& record : memoirfs::test::SampleChain(100)) TRY(writer->Append(record));
  return writer->Sync();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_chain STORE\n", stderr);
    return EXIT_FAILURE;
  }
  const Status status = MakeChain(argv[1]);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
