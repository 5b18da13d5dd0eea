// The control socket's lines: what decodes can be sent on, and means the same then.

#include <string>

#include "fs/daemon/request.h"
#include "tests/fuzz/expect.h"

using memoirfs::Result;
using memoirfs::daemon::DecodeReply;
using memoirfs::daemon::DecodeRequest;
using memoirfs::daemon::EncodeReply;
using memoirfs::daemon::EncodeRequest;
using memoirfs::daemon::Reply;
using memoirfs::daemon::Request;

namespace {

void CheckRequest(std::string_view line) {
  const Result<Request> request = DecodeRequest(line);
  if (!request.ok()) return;
  const Result<std::string> encoded = EncodeRequest(*request);
  if (!encoded.ok()) return;  // longer than a request may be
  const Result<Request> again = DecodeRequest(*encoded);
  EXPECT(again.ok());
  EXPECT(EncodeRequest(*again).value() == *encoded);
}

void CheckReply(std::string_view line) {
  const Result<Reply> reply = DecodeReply(line);
  if (!reply.ok()) return;
  EXPECT((reply->kind == Reply::Kind::kError) == !reply->error.ok());
  EXPECT(reply->data_bytes <= memoirfs::daemon::kMaxDataBytes);
  const std::string encoded = EncodeReply(*reply);
  const Result<Reply> again = DecodeReply(encoded);
  EXPECT(again.ok());
  EXPECT(again->kind == reply->kind);
  EXPECT(again->error.code() == reply->error.code());
  EXPECT(EncodeReply(*again) == encoded);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  CheckRequest(line);
  CheckReply(line);
  return 0;
}
