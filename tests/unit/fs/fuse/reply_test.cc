// The guard alone: a request that libfuse gives to an operation of the test.

#include "fs/fuse/reply.h"

#include <nlohmann/json.hpp>

#include "tests/unit/fs/fuse/fixture.h"

namespace memoirfs::testing {
namespace {

using fuse::Op;
using fuse::Reply;

// What a GETATTR is answered when its operation has the given body.
struct Outcome {
  int answers = 0;
  int error = 0;
  nlohmann::json metrics;
};

std::function<void(fuse_req_t)> operation;
Outcome outcome;

ssize_t Capture(int, iovec* parts, int, void*) {
  fuse_out_header header{};
  std::memcpy(&header, parts[0].iov_base, sizeof(header));
  ++outcome.answers;
  outcome.error = -header.error;
  return header.len;
}

ssize_t NothingToRead(int, void*, size_t, void*) { return 0; }

void Process(fuse_session* session, uint32_t opcode, std::string_view body) {
  fuse_in_header header{};
  header.len = static_cast<uint32_t>(sizeof(header) + body.size());
  header.opcode = opcode;
  header.unique = 2;
  header.nodeid = kRoot;
  std::string message = std::string(Raw(header)).append(body);
  fuse_buf buffer{};
  buffer.mem = message.data();
  buffer.size = message.size();
  fuse_session_process_buf(session, &buffer);
}

Outcome Answer(const std::function<Status(Reply&)>& body) {
  MemoryView view;
  fuse::SessionContext context;
  context.view = &view;
  fuse_lowlevel_ops table{};
  table.getattr = [](fuse_req_t request, fuse_ino_t, fuse_file_info*) { operation(request); };
  operation = [&](fuse_req_t request) { fuse::Serve(request, Op::kGetAttr, body); };
  char name[] = "test";
  char* words[] = {name, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, words);
  fuse_session* session = fuse_session_new(&args, &table, sizeof(table), &context);
  REQUIRE(session != nullptr);
  const fuse_custom_io io{Capture, NothingToRead, nullptr, nullptr};
  REQUIRE(fuse_session_custom_io(session, &io, ::open("/dev/null", O_RDWR | O_CLOEXEC)) == 0);
  fuse_init_in init{};
  init.major = FUSE_KERNEL_VERSION;
  init.minor = FUSE_KERNEL_MINOR_VERSION;
  Process(session, FUSE_INIT, Raw(init));
  outcome = {};
  Process(session, FUSE_GETATTR, Raw(fuse_getattr_in{}));
  fuse_session_destroy(session);
  fuse_opt_free_args(&args);
  outcome.metrics = nlohmann::json::parse(context.metrics.ToJson()).at("getattr");
  return outcome;
}

TEST_CASE("an operation that forgets to answer is answered EIO and logged") {
  const CapturedLog log;
  const Outcome seen = Answer([](Reply&) { return Status(); });
  CHECK(seen.answers == 1);
  CHECK(seen.error == EIO);
  CHECK(seen.metrics.at("count") == 1);
  CHECK(seen.metrics.at("errors") == 1);
  CHECK_THAT(log.Text(), Catch::Contains("fuse.getattr") && Catch::Contains("without an answer"));
}

TEST_CASE("an exception is answered EIO and logged, whatever its type") {
  const CapturedLog log;
  CHECK(Answer([](Reply&) -> Status { throw std::runtime_error("broken inside"); }).error == EIO);
  CHECK(Answer([](Reply&) -> Status { throw 42; }).error == EIO);
  CHECK_THAT(log.Text(), Catch::Contains("broken inside") && Catch::Contains("no std::exception"));
}

TEST_CASE("a failure or an exception after the answer does not answer again") {
  const CapturedLog log;
  const Outcome failed = Answer([](Reply& reply) {
    (void)reply.Error(ENOENT);
    return Status(Code::kExists, "late");
  });
  CHECK(failed.answers == 1);
  CHECK(failed.error == ENOENT);
  const Outcome threw = Answer([](Reply& reply) -> Status {
    (void)reply.Finish({});
    throw std::runtime_error("late");
  });
  CHECK(threw.answers == 1);
  CHECK(threw.error == 0);
  CHECK(threw.metrics.at("count") == 1);
}

TEST_CASE("every failure is answered with its errno, and only EIO is logged") {
  const CapturedLog log;
  for (int code = 1; code <= static_cast<int>(Code::kInternal); ++code) {
    const Status failure(static_cast<Code>(code), "why");
    INFO(CodeName(failure.code()));
    const Outcome seen = Answer([&](Reply&) { return failure; });
    CHECK(seen.answers == 1);
    CHECK(seen.error == failure.ToErrno());
    CHECK(seen.error > 0);
  }
  CHECK(Answer([](Reply&) { return Status::FromErrno(EXDEV, "x"); }).error == EXDEV);
  const std::string text = log.Text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);  // corrupt, io, unknown format, internal
}

}  // namespace
}  // namespace memoirfs::testing
