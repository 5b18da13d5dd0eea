#pragma once

// Makes the system calls of steps in one directory. Paths are relative to it, so that a limit of
// path lengths strikes at the same place on both sides of a comparison. Open descriptors and
// mappings live in numbered slots.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/unique_fd.h"
#include "tests/e2e/parity/step.h"

namespace memoirfs::parity {

// Changes a step before it runs: what the suite's test of itself puts into one of the sides.
using Sabotage = std::optional<Step> (*)(const Step&);

class Mapping {
 public:
  Mapping(void* address, size_t size, UniqueFd fd, off_t offset)
      : address_(static_cast<char*>(address)), size_(size), fd_(std::move(fd)), offset_(offset) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  char* address() const { return address_; }
  size_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  off_t offset() const { return offset_; }

 private:
  char* address_;
  size_t size_;
  UniqueFd fd_;
  off_t offset_;
};

class Executor {
 public:
  explicit Executor(const std::string& directory, Sabotage sabotage = nullptr);
  ~Executor();

  // What the call gave: a number or a text, or the name of its errno.
  std::string Run(const Step& step);

  // Closes descriptors and takes mappings away.
  void CloseAll();

  int root() const { return root_.get(); }
  // The descriptor in a slot, or -1, with which every call answers EBADF.
  int Fd(const std::string& slot) const;
  void Keep(const std::string& slot, int fd) { slots_[slot] = UniqueFd(fd); }
  void Drop(const std::string& slot) { slots_.erase(slot); }
  const std::map<std::string, UniqueFd>& slots() const { return slots_; }

  std::map<std::string, Mapping>& mappings() { return mappings_; }
  pid_t& child() { return child_; }

 private:
  UniqueFd root_;
  std::map<std::string, UniqueFd> slots_;
  std::map<std::string, Mapping> mappings_;
  pid_t child_ = 0;  // a program that `start` left running
  Sabotage sabotage_;
};

// `result` of a system call as text: the number, or the name of errno where it is negative.
std::string Outcome(long result);

using Arguments = std::vector<std::string>;
using Call = std::string (*)(Executor&, const Arguments&);
using Calls = std::map<std::string_view, Call>;

// The calls that there are, by what they work on.
const Calls& NameCalls();
const Calls& FileCalls();
const Calls& MappingCalls();
const Calls& AttributeCalls();

}  // namespace memoirfs::parity
