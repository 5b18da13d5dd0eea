#include "tests/e2e/parity/pair.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "tests/e2e/parity/constants.h"
#include "tests/e2e/parity/differences.h"

namespace memoirfs::parity {
namespace {

constexpr mode_t kSandboxMode = 0777;

std::string MakeDirectory(const std::string& parent, const std::string& name) {
  std::string path = parent + "/" + name;
  if (::mkdir(path.c_str(), kSandboxMode) != 0 || ::chmod(path.c_str(), kSandboxMode) != 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  return path;
}

void Remove(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) std::fprintf(stderr, "removing %s: %s\n", path.c_str(), error.message().c_str());
}

bool Worked(const std::string& outcome) { return outcome.empty() || outcome[0] != 'E'; }

}  // namespace

Pair::Pair(const Sides& sides, const std::string& name, const RunOptions& options)
    : directories_{MakeDirectory(sides.reference, name), MakeDirectory(sides.mount, name)},
      options_(options),
      clock_(sides.reference) {
  reference_.emplace(directories_.reference);
  mount_.emplace(directories_.mount, options.sabotage);
  reference_before_ = TakeSnapshot(*reference_, Depth::kFacts);
  mount_before_ = TakeSnapshot(*mount_, Depth::kFacts);
}

Pair::~Pair() {
  reference_.reset();
  mount_.reset();
  Remove(directories_.reference);
  if (!keep_mount_) Remove(directories_.mount);
}

std::optional<Divergence> Pair::Run(const Script& script, CallCounts* counts) {
  const mode_t mask = ::umask(0);
  std::optional<Divergence> found;
  for (size_t i = 0; i < script.size() && !found; ++i) {
    found = RunStep(script[i], options_.each_step, counts);
    if (found) found->step = i;
  }
  if (!found) {
    found = Close();
    if (found) found->step = script.size() - 1;
  }
  ::umask(mask);
  return found;
}

std::optional<Divergence> Pair::RunStep(const Step& step, Depth depth, CallCounts* counts) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const std::string actual = mount_->Run(step);
  if (options_.trace) std::printf("%s -> %s\n", Format(step).c_str(), actual.c_str());
  if (counts != nullptr) {
    CallCount& count = (*counts)[step.call];
    ++count.made;
    if (Worked(actual)) ++count.worked;
  }
  if (IsKnownAnswer(step, actual)) {
    if (step.call == "open") reference_->Drop(step.arguments[0]);  // as each open does first
  } else {
    if (step.call == "umask") ::umask(mask);  // both sides share the process
    clock_.Advance();
    const std::string expected = reference_->Run(step);
    if (expected != actual) {
      return Divergence{0, step.call + ": result", "expected " + expected + ", got " + actual};
    }
  }
  NoteUntimed(step);
  return CompareNow(step.call, depth);
}

std::optional<Divergence> Pair::CompareNow(const std::string& call, Depth depth) {
  Snapshot reference_after = TakeSnapshot(*reference_, depth);
  Snapshot mount_after = TakeSnapshot(*mount_, depth);
  const auto difference = Compare({reference_before_, reference_after},
                                  {mount_before_, mount_after}, options_.compare, untimed_);
  reference_before_ = std::move(reference_after);
  mount_before_ = std::move(mount_after);
  if (!difference) return std::nullopt;
  return Divergence{0, call + ": " + difference->aspect, difference->text};
}

std::optional<Divergence> Pair::Close() {
  mount_->CloseAll();
  clock_.Advance();
  reference_->CloseAll();
  return CompareNow("closing", Depth::kWhole);
}

void Pair::NoteUntimed(const Step& step) {
  struct stat facts = {};
  if (step.call == "poke") {
    const auto found = reference_->mappings().find(step.arguments[0]);
    const bool mapped = found != reference_->mappings().end();
    if (mapped && ::fstat(found->second.fd(), &facts) == 0) untimed_.insert(facts.st_ino);
    return;
  }
  if (step.call == "truncate") {
    const std::string path = Expand(step.arguments[0]);
    const bool found = ::fstatat(reference_->root(), path.c_str(), &facts, 0) == 0;
    if (found && facts.st_size == 0 && Value(step.arguments[1]) == 0) untimed_.insert(facts.st_ino);
    return;
  }
  for (const std::string& argument : step.arguments) {
    const int fd = reference_->Fd(argument);
    if (fd >= 0 && ::fstat(fd, &facts) == 0 && S_ISFIFO(facts.st_mode)) {
      untimed_.insert(facts.st_ino);
    }
  }
}

Snapshot Pair::KeepMountSide() {
  keep_mount_ = true;
  return TakeSnapshot(*mount_, Depth::kWhole);
}

}  // namespace memoirfs::parity
