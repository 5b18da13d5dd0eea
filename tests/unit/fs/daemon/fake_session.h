#pragma once

// Sessions that mount nothing, and a record of what was asked of them.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/daemon/mounts.h"

namespace memoirfs::daemon::test {

class FakeSession;

// What the kernel would know. It outlives the sessions; used by one thread at a time.
struct FakeMounts {
  std::map<std::string, FakeSession*> mounted;
  std::vector<std::string> calls;               // "mount /a", "unmount /a", "lazy /a"
  std::map<std::string, Status> unmount_fails;  // unless it is lazy
  Status mount_fails;
  // Called while a mount is being made.
  std::function<void()> while_mounting;

  SessionFactory Factory();
};

class FakeSession final : public fuse::Session {
 public:
  FakeSession(FakeMounts& mounts, fuse::SessionOptions options, std::unique_ptr<vfs::View> view)
      : mounts_(mounts), options_(std::move(options)), view_(std::move(view)) {
    mounts_.mounted[options_.mountpoint] = this;
  }
  ~FakeSession() override { Forget(); }

  Status Unmount(bool lazy) override {
    mounts_.calls.push_back((lazy ? "lazy " : "unmount ") + options_.mountpoint);
    const auto fails = mounts_.unmount_fails.find(options_.mountpoint);
    if (!lazy && fails != mounts_.unmount_fails.end()) return fails->second;
    Vanish();
    return {};
  }
  void OnGone(std::function<void()> callback) override { on_gone_ = std::move(callback); }
  const fuse::SessionOptions& options() const override { return options_; }
  vfs::View& view() override { return *view_; }
  std::string MetricsJson() const override { return "{}"; }

  // As umount(8) takes it away.
  void Vanish() {
    Forget();
    if (on_gone_) std::exchange(on_gone_, {})();
  }

 private:
  void Forget() {
    const auto at = mounts_.mounted.find(options_.mountpoint);
    if (at != mounts_.mounted.end() && at->second == this) mounts_.mounted.erase(at);
  }

  FakeMounts& mounts_;
  const fuse::SessionOptions options_;
  const std::unique_ptr<vfs::View> view_;
  std::function<void()> on_gone_;
};

inline SessionFactory FakeMounts::Factory() {
  return [this](const fuse::SessionOptions& options,
                const fuse::ViewFactory& make_view) -> Result<std::unique_ptr<fuse::Session>> {
    calls.push_back("mount " + options.mountpoint);
    if (while_mounting) while_mounting();
    TRY(mount_fails);
    ASSIGN_OR_RETURN(auto view, make_view(nullptr));
    return std::unique_ptr<fuse::Session>(
        std::make_unique<FakeSession>(*this, options, std::move(view)));
  };
}

}  // namespace memoirfs::daemon::test
