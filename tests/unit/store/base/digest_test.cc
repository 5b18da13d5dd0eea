#include "store/base/digest.h"

#include <catch2/catch.hpp>

using memoirfs::Digest;
using memoirfs::Sha256;

TEST_CASE("a digest of no bytes is the one of FIPS 180-4's examples") {
  CHECK(memoirfs::EmptyContent().digest.ToHex() ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("a copied hasher goes on from the midstate") {
  Sha256 first;
  first.Update("ab");
  Sha256 second = first;
  first.Update("c");
  second.Update("c");
  CHECK(first.Finish() == Sha256::Of("abc"));
  CHECK(second.Finish() == Sha256::Of("abc"));
}

TEST_CASE("hex is parsed strictly") {
  const Digest digest = Sha256::Of("x");
  CHECK(Digest::FromHex(digest.ToHex()).value() == digest);
  CHECK_FALSE(Digest::FromHex("").ok());
  CHECK_FALSE(Digest::FromHex(std::string(64, 'A')).ok());
  CHECK_FALSE(Digest::FromHex(std::string(63, 'a')).ok());
}
