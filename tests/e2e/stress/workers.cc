#include "tests/e2e/stress/workers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>

namespace memoirfs::stress {
namespace {

using Clock = std::chrono::steady_clock;

// A counter that all processes see.
class SharedCounter {
 public:
  SharedCounter() {
    void* memory = ::mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    counter_ = new (memory) std::atomic<uint64_t>(0);
  }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  ~SharedCounter() { ::munmap(counter_, sizeof *counter_); }

  std::atomic<uint64_t>* get() const { return counter_; }

 private:
  std::atomic<uint64_t>* counter_;
};

void RunThread(const Crew& crew, unsigned number, std::atomic<uint64_t>* progress, const Work& work,
               std::atomic<bool>* failed) {
  Worker worker{number, crew.rounds, crew.directories[number % crew.directories.size()],
                e2e::Random(crew.seed * 1000 + number), progress};
  try {
    work(worker);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "worker %u: %s\n", number, error.what());
    *failed = true;
  }
}

[[noreturn]] void RunProcess(const Crew& crew, unsigned process, std::atomic<uint64_t>* progress,
                             const Work& work) {
  std::atomic<bool> failed = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < crew.threads; ++i) {
    threads.emplace_back(
        [&, i] { RunThread(crew, process * crew.threads + i, progress, work, &failed); });
  }
  for (std::thread& thread : threads) thread.join();
  std::fflush(stderr);
  ::_exit(failed ? 1 : 0);
}

// The children that still run, and whether all that ended were content.
class Children {
 public:
  void Add(pid_t child) { children_.push_back(child); }

  // Waits for a moment. The watchdog is the one place where time is what is measured.
  void Poll() {
    std::vector<pid_t> running;
    for (const pid_t child : children_) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) == 0) {
        running.push_back(child);
      } else if (status != 0) {
        ++failed_;
      }
    }
    children_ = std::move(running);
    if (!children_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  void Kill() const {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
  }

  bool empty() const { return children_.empty(); }
  size_t failed() const { return failed_; }

 private:
  std::vector<pid_t> children_;
  size_t failed_ = 0;
};

void Watch(const Crew& crew, const std::atomic<uint64_t>& progress, Children* children) {
  uint64_t seen = 0;
  auto since = Clock::now();
  while (!children->empty()) {
    children->Poll();
    const uint64_t now = progress.load(std::memory_order_relaxed);
    if (now != seen) {
      seen = now;
      since = Clock::now();
    } else if (Clock::now() - since > std::chrono::seconds(crew.stall_seconds)) {
      std::fprintf(stderr, "nothing moved for %u s\n", crew.stall_seconds);
      if (!crew.stall_command.empty() && std::system(crew.stall_command.c_str()) != 0) {
        std::fprintf(stderr, "failed: %s\n", crew.stall_command.c_str());
      }
      children->Kill();
      throw Violation("a deadlock, or something that looks like one");
    }
  }
}

}  // namespace

uint64_t RunCrew(const Crew& crew, const Work& work) {
  const SharedCounter progress;
  Children children;
  std::fflush(stdout);
  for (unsigned process = 0; process < crew.processes; ++process) {
    const pid_t child = ::fork();
    if (child == 0) RunProcess(crew, process, progress.get(), work);
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    children.Add(child);
  }
  Watch(crew, *progress.get(), &children);
  if (children.failed() > 0) {
    throw Violation(std::to_string(children.failed()) + " processes failed");
  }
  return progress.get()->load();
}

}  // namespace memoirfs::stress
