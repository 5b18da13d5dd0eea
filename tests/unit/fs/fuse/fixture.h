#pragma once

// A session on a fake kernel, with a view of the test's choice.

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "fs/fuse/session.h"
#include "store/base/log.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/memory_view.h"

namespace memoirfs::testing {

inline constexpr uint64_t kRoot = 1;

template <typename ViewType = MemoryView>
struct Fixture {
  explicit Fixture(uint32_t capabilities = FakeKernel::kAllCapabilities) : kernel(capabilities) {
    auto attached = fuse::Session::Attach(
        {},
        [this](vfs::KernelNotifier* of_session) -> Result<std::unique_ptr<vfs::View>> {
          notifier = of_session;
          auto made = std::make_unique<ViewType>();
          view = made.get();
          return std::unique_ptr<vfs::View>(std::move(made));
        },
        kernel.TakeSessionEnd());
    INFO(attached.status().ToString());
    REQUIRE(attached.ok());
    session = std::move(*attached);
    kernel.init();
  }

  // A file with this content; returns its node.
  uint64_t MakeFile(const std::string& name, const std::string& content = "") {
    const auto made = kernel.Create(kRoot, name, O_RDWR, S_IFREG | 0644);
    REQUIRE(made.error == 0);
    const uint64_t node = made.As<fuse_entry_out>().nodeid;
    const uint64_t handle = HandleOf(made);
    if (!content.empty()) REQUIRE(kernel.Write(node, handle, 0, content).error == 0);
    REQUIRE(kernel.Release(node, handle).error == 0);
    return node;
  }

  // What a CREATE answers behind the entry.
  static fuse_open_out OpenedOf(const FakeKernel::Answer& created) {
    return FakeKernel::Answer{0, created.body.substr(sizeof(fuse_entry_out))}.As<fuse_open_out>();
  }
  static uint64_t HandleOf(const FakeKernel::Answer& created) { return OpenedOf(created).fh; }

  FakeKernel kernel;
  vfs::KernelNotifier* notifier = nullptr;
  ViewType* view = nullptr;
  std::unique_ptr<fuse::Session> session;
};

// The log goes to a file while this lives; later lines are lost.
class CapturedLog {
 public:
  CapturedLog() {
    char name[] = "/tmp/memoirfs-log-XXXXXX";
    const int fd = ::mkstemp(name);
    REQUIRE(fd >= 0);
    ::close(fd);
    path_ = name;
    REQUIRE(LogToFile(path_).ok());
  }
  ~CapturedLog() { std::filesystem::remove(path_); }

  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

}  // namespace memoirfs::testing
