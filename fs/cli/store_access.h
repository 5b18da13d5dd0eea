#pragma once

// The one place that decides how a command reaches a store: a daemon that holds it is asked over
// its socket; otherwise the command opens it itself, under the same lock.

#include <chrono>
#include <string>
#include <thread>

#include "fs/cli/output.h"
#include "fs/daemon/request.h"
#include "store/base/status.h"

namespace memoirfs::cli {

enum class Access {
  kRead,  // without a daemon the store is opened read-only: nothing in it changes
  kWrite,
};

// Carries `request` out and returns its result, a JSON object's text. What comes before it goes to
// `sink`. kLocked when another command works on the store just now.
Result<std::string> Ask(const std::string& store, const daemon::Request& request, Access access,
                        daemon::ReplySink& sink);

// As Ask, for requests whose answer is only a result; progress is shown on a terminal.
Result<std::string> Ask(const std::string& store, const daemon::Request& request, Access access);

// Daemons start and end, and commands hold the lock of a store for a moment: what fails because of
// that (kUnavailable, kLocked) is tried again for a while. `attempt` returns a Status or a Result.
template <typename Attempt>
auto Patiently(const Attempt& attempt) -> decltype(attempt()) {
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::chrono::milliseconds kPause{50};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    auto result = attempt();
    const bool passing = result.code() == Code::kUnavailable || result.code() == Code::kLocked;
    if (!passing || std::chrono::steady_clock::now() > deadline) return result;
    std::this_thread::sleep_for(kPause);
  }
}

// Whether a daemon holds the store and listens.
Result<bool> IsServed(const std::string& store);

// Takes nothing but progress, which it shows. Commands derive from it for what they print.
class ConsoleSink : public daemon::ReplySink {
 public:
  Status Progress(const volume::VerifyProgress& progress) override;
  Status Item(const std::string& json) override;
  Status Data(ByteView bytes) override;

 private:
  ProgressBar bar_;
};

}  // namespace memoirfs::cli
