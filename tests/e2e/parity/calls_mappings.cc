// Calls that work on mappings. Only bytes that the file has are touched, but for a whole page
// behind its end, which must give SIGBUS: what the rest of the last page holds is nobody's promise.

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/e2e/parity/constants.h"
#include "tests/e2e/parity/content.h"
#include "tests/e2e/parity/executor.h"

namespace memoirfs::parity {
namespace {

sigjmp_buf fault;

void OnFault(int signal) { siglongjmp(fault, signal); }

// Catches what touching a mapping can give while it lives.
class FaultHandlers {
 public:
  FaultHandlers() {
    struct sigaction action = {};
    action.sa_handler = OnFault;
    ::sigaction(SIGBUS, &action, &bus_error_);
    ::sigaction(SIGSEGV, &action, &violation_);
  }
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;
  ~FaultHandlers() {
    ::sigaction(SIGBUS, &bus_error_, nullptr);
    ::sigaction(SIGSEGV, &violation_, nullptr);
  }

 private:
  struct sigaction bus_error_ = {};
  struct sigaction violation_ = {};
};

// Copies between a mapping and a buffer; the signal that this gave, or 0.
int GuardedCopy(char* to, const char* from, size_t size) {
  const FaultHandlers handlers;
  const int signal = sigsetjmp(fault, 1);
  if (signal == 0) std::memcpy(to, from, size);
  return signal;
}

std::string SignalName(int signal) { return std::string("SIG") + sigabbrev_np(signal); }

// How many bytes at `at` of a mapping can be touched: those of the file, or 1 on a page that is
// wholly behind its end; 0 where the outcome is not defined.
size_t Touchable(const Mapping& mapping, size_t at, size_t wanted) {
  struct stat facts = {};
  if (at >= mapping.size() || ::fstat(mapping.fd(), &facts) != 0) return 0;
  const off_t page = ::sysconf(_SC_PAGESIZE);
  const off_t place = mapping.offset() + static_cast<off_t>(at);
  const off_t end = (facts.st_size + page - 1) / page * page;
  if (place >= end) return 1;
  if (place >= facts.st_size) return 0;
  return std::min({wanted, mapping.size() - at, static_cast<size_t>(facts.st_size - place)});
}

// map NAME SLOT OFFSET SIZE PROTECTION KIND
std::string Map(Executor& executor, const Arguments& a) {
  executor.mappings().erase(a.at(0));
  const auto size = static_cast<size_t>(Value(a.at(3)));
  const off_t offset = static_cast<off_t>(Value(a.at(2)));
  const int protection = static_cast<int>(Value(a.at(4)));
  const int fd = executor.Fd(a.at(1));
  void* address = ::mmap(nullptr, size, protection, static_cast<int>(Value(a.at(5))), fd, offset);
  if (address == MAP_FAILED) return Outcome(-1);
  executor.mappings().emplace(a[0], Mapping(address, size, UniqueFd(::dup(fd)), offset));
  return "0";
}

std::string Unmap(Executor& executor, const Arguments& a) {
  return executor.mappings().erase(a.at(0)) == 1 ? "0" : "not mapped";
}

// peek NAME AT SIZE
std::string Peek(Executor& executor, const Arguments& a) {
  const auto found = executor.mappings().find(a.at(0));
  if (found == executor.mappings().end()) return "not mapped";
  const auto at = static_cast<size_t>(Value(a.at(1)));
  std::string bytes(Touchable(found->second, at, static_cast<size_t>(Value(a.at(2)))), '\0');
  const int signal = GuardedCopy(bytes.data(), found->second.address() + at, bytes.size());
  return signal == 0 ? Describe(bytes) : SignalName(signal);
}

// poke NAME AT DATA
std::string Poke(Executor& executor, const Arguments& a) {
  const auto found = executor.mappings().find(a.at(0));
  if (found == executor.mappings().end()) return "not mapped";
  const auto at = static_cast<size_t>(Value(a.at(1)));
  const std::string data = Data(a.at(2));
  const size_t size = std::min(data.size(), Touchable(found->second, at, data.size()));
  const int signal = GuardedCopy(found->second.address() + at, data.data(), size);
  return signal == 0 ? "0" : SignalName(signal);
}

std::string Msync(Executor& executor, const Arguments& a) {
  const auto found = executor.mappings().find(a.at(0));
  if (found == executor.mappings().end()) return "not mapped";
  return Outcome(::msync(found->second.address(), found->second.size(), MS_SYNC));
}

}  // namespace

const Calls& MappingCalls() {
  static const Calls calls = {
      {"map", Map}, {"unmap", Unmap}, {"peek", Peek}, {"poke", Poke}, {"msync", Msync}};
  return calls;
}

}  // namespace memoirfs::parity
