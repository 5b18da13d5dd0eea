#include "tests/e2e/parity/executor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace memoirfs::parity {
namespace {

// Permissions are checked by the file-system uid, which also takes the capabilities of root away
// that matter here. It belongs to the thread, so that nobody else can signal the process.
class ActAs {
 public:
  explicit ActAs(uid_t user) : changed_(user != 0) {
    if (changed_) Become(user);
  }
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;
  ~ActAs() {
    if (changed_) Become(0);
  }

 private:
  static void Become(uid_t user) {
    const int error = errno;
    setfsgid(user);
    setfsuid(user);
    errno = error;
  }

  bool changed_;
};

Call Find(const std::string& name) {
  for (const Calls* calls : {&NameCalls(), &FileCalls(), &MappingCalls(), &AttributeCalls()}) {
    const auto found = calls->find(name);
    if (found != calls->end()) return found->second;
  }
  throw std::invalid_argument("no call of this name: " + name);
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      size_(other.size_),
      fd_(std::move(other.fd_)),
      offset_(other.offset_) {}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

Executor::Executor(const std::string& directory, Sabotage sabotage)
    : root_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), sabotage_(sabotage) {
  if (!root_.valid()) throw std::system_error(errno, std::generic_category(), directory);
}

Executor::~Executor() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

std::string Executor::Run(const Step& step) {
  if (sabotage_ != nullptr) {
    const std::optional<Step> other = sabotage_(step);
    if (!other) return "0";
    if (Format(*other) != Format(step)) {
      const ActAs actor(other->user);
      return Find(other->call)(*this, other->arguments);
    }
  }
  const Call call = Find(step.call);
  const ActAs actor(step.user);
  try {
    return call(*this, step.arguments);
  } catch (const std::out_of_range&) {
    throw std::invalid_argument("too few arguments, or a number out of range: " + Format(step));
  }
}

void Executor::CloseAll() {
  mappings_.clear();
  slots_.clear();
}

int Executor::Fd(const std::string& slot) const {
  const auto found = slots_.find(slot);
  return found == slots_.end() ? -1 : found->second.get();
}

std::string Outcome(long result) {
  return result < 0 ? std::string(strerrorname_np(errno)) : std::to_string(result);
}

}  // namespace memoirfs::parity
