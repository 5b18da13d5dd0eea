#pragma once

// The choke point that every request passes. Serve() runs the body of an operation with a Reply
// and sees to it that the kernel gets exactly one answer: a failure becomes its errno, an exception
// becomes EIO, and so does a body that ends without having answered; each of these is logged with
// the operation as its site. What was answered is counted and timed.

#include <fuse_lowlevel.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "fs/fuse/metrics.h"
#include "fs/vfs/vfs.h"

namespace memoirfs::fuse {

// What the operations of one session work on; libfuse hands it to each of them.
struct SessionContext {
  vfs::View* view = nullptr;
  Metrics metrics;
  std::function<void()> on_serving;      // called once INIT is answered
  std::atomic<uint64_t> init_unique{0};  // of the INIT that is not answered yet; else 0
  // Both written before INIT is answered: what is added to that answer, and whether the kernel then
  // says with each request if the caller keeps suid and sgid.
  uint32_t added_features = 0;
  bool kill_privileges_told = false;
};

// The one answer to one request. Used by one thread. The methods that answer return ok, so that an
// operation can end with `return reply.Entry(node)`.
class Reply {
 public:
  Reply(fuse_req_t request, Op op);
  ~Reply();  // answers EIO if nothing did
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  vfs::View& view() { return *context_.view; }
  fuse_req_t request() const { return request_; }
  vfs::Caller caller() const;
  // Who opens, creates or writes with these flags, as channel.h completes them.
  vfs::Caller caller(int flags) const;

  // Answers with success or the errno of `status`; returns it.
  Status Finish(Status status);
  // An exception that reached the choke point.
  void Fault(std::string_view what);

  Status Error(int error);
  Status Entry(const vfs::Node& node);
  Status NoEntry();  // the name is missing, and the kernel may remember that
  Status Attributes(const vfs::Node& node);
  Status Link(const std::string& target);
  // Release the handle at once where the caller was interrupted and will not.
  Status Opened(const vfs::Opened& opened, fuse_file_info info);
  Status Created(const vfs::View::Created& created, fuse_file_info info);
  Status Data(ByteView data);
  Status Written(size_t size);
  // The size alone where `room` is 0, as getxattr(2) has it; ERANGE where it does not fit.
  Status Xattr(ByteView value, size_t room);
  Status FileSystem(const vfs::FileSystemFacts& facts);
  Status Offset(uint64_t offset);

 private:
  // Counts the answer; returns the request for the one fuse_reply_ call that follows. Counting
  // comes first, so that who saw the answer sees it counted.
  fuse_req_t Take(int error);
  void ReleaseUnclaimed(vfs::HandleId handle);
  std::string Site() const;

  const fuse_req_t request_;
  SessionContext& context_;
  const Op op_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool answered_ = false;
};

// Runs `body(Reply&) -> Status`. A failure that it returns is the answer, unless it answered.
template <typename Body>
void Serve(fuse_req_t request, Op op, Body&& body) {
  Reply reply(request, op);
  try {
    if (Status status = body(reply); !status.ok()) (void)reply.Finish(std::move(status));
  } catch (const std::exception& exception) {
    reply.Fault(exception.what());
  } catch (...) {
    reply.Fault("an exception that is no std::exception");
  }
}

}  // namespace memoirfs::fuse
