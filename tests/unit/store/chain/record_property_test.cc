#include <catch2/catch.hpp>
#include <random>

#include "store/base/json.h"
#include "store/chain/record.h"
#include "store/chain/verifier.h"
#include "tests/support/chain_samples.h"

using memoirfs::chain::ChainVerifier;
using memoirfs::chain::Change;
using memoirfs::chain::Head;
using memoirfs::chain::ParsedRecord;
using memoirfs::chain::ParseRecord;
using memoirfs::chain::SealedRecord;
using memoirfs::chain::SealRecord;

TEST_CASE("whatever a change says is read back as it was, and the chain of it verifies") {
  constexpr unsigned kSeed = 20260131;
  INFO("seed " << kSeed);
  std::mt19937 random(kSeed);
  ChainVerifier verifier;
  Head head;
  for (int i = 0; i < 2000; ++i) {
    const Change change = memoirfs::test::RandomChange(random);
    const SealedRecord sealed =
        SealRecord(memoirfs::test::SampleContext(), head, change, head.ts + 1).value();
    INFO(i << ": " << sealed.line);
    const memoirfs::Result<ParsedRecord> parsed = ParseRecord(sealed.line);
    REQUIRE(parsed.status().ToString() == "ok");
    REQUIRE(parsed->change == change);
    REQUIRE(parsed->prev_hash == head.hash);
    REQUIRE(sealed.line ==
            memoirfs::CanonicalAscii(memoirfs::ParseJson(sealed.line).value()).value());
    verifier.Add(sealed.line);
    head = Head{sealed.seq, sealed.hash, sealed.ts};
  }
  CHECK(verifier.problems() == std::vector<std::string>{});
  CHECK(verifier.count() == 2000);
  CHECK(verifier.head() == head.hash);
}
