#include "store/base/status.h"

#include <catch2/catch.hpp>
#include <memory>

using memoirfs::Code;
using memoirfs::Result;
using memoirfs::Status;

namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return Status(Code::kInvalidArgument, "odd");
  return value / 2;
}

Result<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}

Status MustBeEven(int value) {
  TRY(Half(value));
  return {};
}

}  // namespace

TEST_CASE("a Status that is made of nothing is ok") {
  const Status status;
  CHECK(status.ok());
  CHECK(status.code() == Code::kOk);
  CHECK(status.ToErrno() == 0);
  CHECK(status.ToString() == "ok");
  CHECK(status.WithContext("anything").ok());
}

TEST_CASE("frames of context stand in front, the outermost first") {
  const Status status = Status(Code::kNotFound, "no entry").WithContext("dir").WithContext("open");
  CHECK(status.code() == Code::kNotFound);
  CHECK(status.ToString() == "open: dir: no entry");
}

TEST_CASE("a failed system call keeps its errno, also one that has no code of its own") {
  const Status status = Status::FromErrno(EPROTO, "recvmsg");
  CHECK(status.code() == Code::kIo);
  CHECK(status.ToErrno() == EPROTO);
  CHECK(status.message().rfind("recvmsg: ", 0) == 0);
}

TEST_CASE("corrupt bytes answer EIO whatever the system said") {
  CHECK(Status(Code::kCorrupt, "digest differs", ENOENT).ToErrno() == EIO);
}

TEST_CASE("every code has a name of its own and an errno, and those of one errno map back to it") {
  for (int i = 1; i <= static_cast<int>(Code::kInternal); ++i) {
    const auto code = static_cast<Code>(i);
    INFO(i);
    CHECK_FALSE(memoirfs::CodeName(code).empty());
    CHECK(memoirfs::ErrnoOf(code) > 0);
    CHECK(memoirfs::ErrnoOf(memoirfs::CodeOfErrno(memoirfs::ErrnoOf(code))) ==
          memoirfs::ErrnoOf(code));
    for (int other = 0; other < i; ++other) {
      CHECK(memoirfs::CodeName(code) != memoirfs::CodeName(static_cast<Code>(other)));
    }
  }
}

TEST_CASE("TRY and ASSIGN_OR_RETURN hand a failure on and let a value through") {
  CHECK(Quarter(8).value() == 2);
  CHECK(Quarter(6).code() == Code::kInvalidArgument);
  CHECK(Quarter(6).status().message() == "odd");
  CHECK(MustBeEven(2).ok());
  CHECK(MustBeEven(3).code() == Code::kInvalidArgument);
}

TEST_CASE("a Result of a Status that is ok is a fault, not a value") {
  const Result<int> result = Status();
  CHECK_FALSE(result.ok());
  CHECK(result.code() == Code::kInternal);
}

TEST_CASE("a Result hands over what can only be moved") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = *std::move(result);
  CHECK(*taken == 7);
}
