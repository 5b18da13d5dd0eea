// Calls that work on names.

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/e2e/parity/constants.h"
#include "tests/e2e/parity/executor.h"

namespace memoirfs::parity {
namespace {

constexpr mode_t kDefaultMode = 0644;

std::string Path(const Arguments& arguments, size_t index) { return Expand(arguments.at(index)); }

int Flags(const Arguments& arguments, size_t index) {
  return index < arguments.size() ? static_cast<int>(Value(arguments[index])) : 0;
}

mode_t Mode(const Arguments& arguments, size_t index) {
  return index < arguments.size() ? static_cast<mode_t>(Value(arguments[index])) : kDefaultMode;
}

// open SLOT PATH FLAGS [MODE]: what was in the slot is closed first. A fifo must not make it wait.
std::string Open(Executor& executor, const Arguments& a) {
  executor.Drop(a.at(0));
  const int fd = ::openat(executor.root(), Path(a, 1).c_str(), Flags(a, 2) | O_CLOEXEC | O_NONBLOCK,
                          Mode(a, 3));
  if (fd < 0) return Outcome(fd);
  executor.Keep(a[0], fd);
  return "0";
}

std::string Close(Executor& executor, const Arguments& a) {
  executor.Drop(a.at(0));
  return "0";
}

std::string Mkdir(Executor& executor, const Arguments& a) {
  return Outcome(::mkdirat(executor.root(), Path(a, 0).c_str(), Mode(a, 1)));
}

std::string Rmdir(Executor& executor, const Arguments& a) {
  return Outcome(::unlinkat(executor.root(), Path(a, 0).c_str(), AT_REMOVEDIR));
}

std::string Unlink(Executor& executor, const Arguments& a) {
  return Outcome(::unlinkat(executor.root(), Path(a, 0).c_str(), 0));
}

// rename FROM TO [FLAGS]
std::string Rename(Executor& executor, const Arguments& a) {
  return Outcome(::renameat2(executor.root(), Path(a, 0).c_str(), executor.root(),
                             Path(a, 1).c_str(), static_cast<unsigned>(Flags(a, 2))));
}

// link FROM TO [FLAGS]
std::string Link(Executor& executor, const Arguments& a) {
  return Outcome(::linkat(executor.root(), Path(a, 0).c_str(), executor.root(), Path(a, 1).c_str(),
                          Flags(a, 2)));
}

// linkfd SLOT TO: gives an open file a name.
std::string LinkDescriptor(Executor& executor, const Arguments& a) {
  const std::string from = "/proc/self/fd/" + std::to_string(executor.Fd(a.at(0)));
  return Outcome(
      ::linkat(AT_FDCWD, from.c_str(), executor.root(), Path(a, 1).c_str(), AT_SYMLINK_FOLLOW));
}

// symlink TARGET PATH
std::string Symlink(Executor& executor, const Arguments& a) {
  return Outcome(::symlinkat(Path(a, 0).c_str(), executor.root(), Path(a, 1).c_str()));
}

std::string Readlink(Executor& executor, const Arguments& a) {
  std::string target(8192, '\0');
  const ssize_t size =
      ::readlinkat(executor.root(), Path(a, 0).c_str(), target.data(), target.size());
  if (size < 0) return Outcome(size);
  return "-> " + target.substr(0, static_cast<size_t>(size));
}

// mknod PATH MODE [DEVICE]
std::string Mknod(Executor& executor, const Arguments& a) {
  const dev_t device = a.size() > 2 ? static_cast<dev_t>(Value(a[2])) : 0;
  return Outcome(::mknodat(executor.root(), Path(a, 0).c_str(), Mode(a, 1), device));
}

// access PATH MODE [FLAGS]
std::string Access(Executor& executor, const Arguments& a) {
  return Outcome(::faccessat(executor.root(), Path(a, 0).c_str(), Flags(a, 1), Flags(a, 2)));
}

std::string Umask(Executor&, const Arguments& a) {
  return Outcome(static_cast<long>(::umask(static_cast<mode_t>(Value(a.at(0))))));
}

std::string Names(DIR* directory) {
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) names.emplace_back(entry->d_name);
  if (errno != 0) return Outcome(-1);
  std::sort(names.begin(), names.end());
  std::string text = "[";
  for (const std::string& name : names) text += name + " ";
  return text + "]";
}

std::string ListDescriptor(int fd) {
  DIR* directory = fd < 0 ? nullptr : ::fdopendir(fd);
  if (directory == nullptr) {
    const std::string outcome = Outcome(-1);
    if (fd >= 0) ::close(fd);
    return outcome;
  }
  std::string names = Names(directory);
  ::closedir(directory);
  return names;
}

std::string List(Executor& executor, const Arguments& a) {
  return ListDescriptor(
      ::openat(executor.root(), Path(a, 0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// listfd SLOT: from the start, whatever was listed before.
std::string ListSlot(Executor& executor, const Arguments& a) {
  const int fd = ::fcntl(executor.Fd(a.at(0)), F_DUPFD_CLOEXEC, 0);
  if (fd >= 0) ::lseek(fd, 0, SEEK_SET);
  return ListDescriptor(fd);
}

std::string Statfs(Executor& executor, const Arguments& a) {
  const UniqueFd fd(::openat(executor.root(), Path(a, 0).c_str(), O_PATH | O_CLOEXEC));
  struct statfs facts = {};
  const int result = ::fstatfs(fd.get(), &facts);
  if (result < 0) return Outcome(result);
  return "namelen " + std::to_string(facts.f_namelen);
}

// exec PATH: runs it without arguments; its exit status, or why it could not be run.
std::string Exec(Executor& executor, const Arguments& a) {
  const std::string path = Path(a, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char name[] = "program";
    char* words[] = {name, nullptr};
    char* environment[] = {nullptr};
    ::execveat(executor.root(), path.c_str(), words, environment, 0);
    ::_exit(128 + (errno & 127));
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) < 0) return Outcome(-1);
  if (!WIFEXITED(status)) return "killed";
  const int code = WEXITSTATUS(status);
  return code < 128 ? "exit " + std::to_string(code) : strerrorname_np(code - 128);
}

// start PATH SECONDS: leaves a copy of sleep(1) running until `stop`.
std::string Start(Executor& executor, const Arguments& a) {
  const std::string path = Path(a, 0);
  std::string seconds = a.at(1);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return Outcome(-1);
  const pid_t child = ::fork();
  if (child == 0) {
    char name[] = "sleep";
    char* words[] = {name, seconds.data(), nullptr};
    char* environment[] = {nullptr};
    ::execveat(executor.root(), path.c_str(), words, environment, 0);
    ::_exit(127);
  }
  ::close(ready[1]);
  char byte = 0;
  const ssize_t closed = ::read(ready[0], &byte, 1);  // returns when exec has closed the other side
  ::close(ready[0]);
  executor.child() = child;
  return Outcome(closed);
}

std::string Stop(Executor& executor, const Arguments&) {
  const pid_t child = std::exchange(executor.child(), 0);
  if (child <= 0) return "none";
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "killed" : "had ended";
}

}  // namespace

const Calls& NameCalls() {
  static const Calls calls = {
      {"open", Open},         {"close", Close},     {"mkdir", Mkdir},
      {"rmdir", Rmdir},       {"unlink", Unlink},   {"rename", Rename},
      {"link", Link},         {"symlink", Symlink}, {"linkfd", LinkDescriptor},
      {"readlink", Readlink}, {"mknod", Mknod},     {"access", Access},
      {"umask", Umask},       {"list", List},       {"listfd", ListSlot},
      {"statfs", Statfs},     {"exec", Exec},       {"start", Start},
      {"stop", Stop}};
  return calls;
}

}  // namespace memoirfs::parity
