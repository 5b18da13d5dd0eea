#include "fs/fuse/session.h"

#include <sys/socket.h>

#include <future>
#include <nlohmann/json.hpp>

#include "tests/unit/fs/fuse/fixture.h"

namespace memoirfs::testing {
namespace {

TEST_CASE("the handshake asks for what this file system relies on, and for nothing else") {
  Fixture<> fixture;
  const fuse_init_out& init = fixture.kernel.init();
  CHECK(init.major == FUSE_KERNEL_VERSION);
  CHECK(init.max_write == 1U << 20);
  CHECK(init.max_readahead == 128 * 1024);
  for (const uint32_t wanted :
       {FUSE_EXPLICIT_INVAL_DATA, FUSE_PARALLEL_DIROPS, FUSE_ATOMIC_O_TRUNC, FUSE_ASYNC_READ,
        FUSE_DO_READDIRPLUS, FUSE_BIG_WRITES, FUSE_HANDLE_KILLPRIV_V2}) {
    INFO(wanted);
    CHECK((init.flags & wanted) == wanted);
  }
  for (const uint32_t unwanted :
       {FUSE_AUTO_INVAL_DATA, FUSE_WRITEBACK_CACHE, FUSE_EXPORT_SUPPORT, FUSE_POSIX_ACL,
        FUSE_HANDLE_KILLPRIV, FUSE_POSIX_LOCKS, FUSE_FLOCK_LOCKS, FUSE_DONT_MASK, FUSE_SPLICE_READ,
        FUSE_SPLICE_WRITE, FUSE_NO_OPEN_SUPPORT}) {
    INFO(unwanted);
    CHECK((init.flags & unwanted) == 0);
  }
}

TEST_CASE("a kernel that offers nothing is served too") {
  Fixture<> fixture(0);
  const uint32_t flags = fixture.kernel.init().flags;
  CHECK((flags & (FUSE_EXPLICIT_INVAL_DATA | FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2)) == 0);
  CHECK(fixture.kernel.GetAttr(kRoot).error == 0);
}

TEST_CASE("the session ends when the kernel's end closes, and says so once") {
  Fixture<> fixture;
  std::promise<void> gone;
  std::atomic<int> calls = 0;
  fixture.session->OnGone([&] {
    ++calls;
    gone.set_value();
  });
  CHECK(calls == 0);
  fixture.kernel.Close();
  REQUIRE(gone.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready);
  CHECK(fixture.session->Unmount(false).ok());
  fixture.session.reset();
  CHECK(calls == 1);
}

TEST_CASE("who asks after the end is told at once") {
  Fixture<> fixture;
  std::promise<void> first;
  fixture.session->OnGone([&] { first.set_value(); });
  fixture.kernel.Close();
  first.get_future().wait();
  bool told = false;
  fixture.session->OnGone([&] { told = true; });
  CHECK(told);
}

TEST_CASE("unmounting ends the session") {
  Fixture<> fixture;
  std::promise<void> gone;
  fixture.session->OnGone([&] { gone.set_value(); });
  CHECK(fixture.session->Unmount(false).ok());
  CHECK(gone.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready);
}

TEST_CASE("destroying a session that nobody ended ends it, and calls back") {
  int calls = 0;
  {
    Fixture<> fixture;
    fixture.session->OnGone([&] { ++calls; });
    CHECK(fixture.kernel.GetAttr(kRoot).error == 0);
    fixture.session.reset();
  }
  CHECK(calls == 1);
}

// Holds a request until it is let go.
struct SlowView : MemoryView {
  Result<vfs::Node> GetAttributes(vfs::NodeId node) override {
    entered.set_value();
    go.get_future().wait();
    return MemoryView::GetAttributes(node);
  }
  std::promise<void> entered, go;
};

TEST_CASE("a request in work is finished before the session is destroyed") {
  Fixture<SlowView> fixture;
  fixture.kernel.Send(FUSE_GETATTR, kRoot, Raw(fuse_getattr_in{}));
  fixture.view->entered.get_future().wait();
  auto destroyed = std::async(std::launch::async, [&] { fixture.session.reset(); });
  fixture.view->go.set_value();
  CHECK(destroyed.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
}

TEST_CASE("other requests are served while one is in work") {
  Fixture<SlowView> fixture;
  const uint64_t slow = fixture.kernel.Send(FUSE_GETATTR, kRoot, Raw(fuse_getattr_in{}));
  fixture.view->entered.get_future().wait();
  CHECK(fixture.kernel.Lookup(kRoot, "nothing").error == 0);
  fixture.view->go.set_value();
  CHECK(fixture.kernel.Wait(slow).error == 0);
}

TEST_CASE("a view that cannot be made is the failure of Attach, and the socket is closed") {
  FakeKernel kernel;
  const auto attached = fuse::Session::Attach(
      {}, [](vfs::KernelNotifier*) { return Status(Code::kNotFound, "no such agent"); },
      kernel.TakeSessionEnd());
  CHECK(attached.code() == Code::kNotFound);
  CHECK_THROWS(kernel.init());
}

TEST_CASE("a connection that ends before INIT is a failure and not a hang") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  ::close(ends[0]);
  const auto attached = fuse::Session::Attach(
      {},
      [](vfs::KernelNotifier*) -> Result<std::unique_ptr<vfs::View>> {
        return std::unique_ptr<vfs::View>(std::make_unique<MemoryView>());
      },
      ends[1]);
  CHECK(attached.code() == Code::kUnavailable);
}

TEST_CASE("the metrics count what was answered") {
  Fixture<> fixture;
  fixture.kernel.GetXattr(kRoot, "user.nothing", 100);
  fixture.kernel.GetAttr(kRoot);
  fixture.kernel.GetAttr(kRoot);
  const auto metrics = nlohmann::json::parse(fixture.session->MetricsJson());
  CHECK(metrics.at("getxattr").at("errors") == 1);
  CHECK(metrics.at("getattr").at("count") == 2);
  CHECK(metrics.at("getattr").at("errors") == 0);
}

}  // namespace
}  // namespace memoirfs::testing
