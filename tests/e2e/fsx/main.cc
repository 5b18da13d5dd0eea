// Random changes of a few files, each compared with what memory says the file must hold.

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "tests/e2e/fsx/verified_file.h"
#include "tests/e2e/native/random.h"

namespace memoirfs::fsx {
namespace {

struct Options {
  std::string directory;
  uint64_t seed = 1;
  uint64_t operations = 100'000;
  unsigned seconds = 0;
  size_t files = 4;
  size_t largest = 700'000;
  std::string remount;
  uint64_t remount_each = 25'000;
  uint64_t damage_each = 0;
  bool no_zero_range = false;
};

class Run {
 public:
  explicit Run(const Options& options) : options_(options), random_(options.seed) {
    for (size_t i = 0; i < options.files; ++i) {
      files_.emplace_back(options.directory + "/file-" + std::to_string(i));
      files_.back().Open(O_TRUNC);
    }
  }

  void Go() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options_.seconds);
    for (done_ = 1;; ++done_) {
      const bool over = options_.seconds == 0 ? done_ > options_.operations
                                              : std::chrono::steady_clock::now() >= end;
      if (over) break;
      Step();
      if (options_.damage_each != 0 && done_ % options_.damage_each == 0) Damage();
      if (!options_.remount.empty() && done_ % options_.remount_each == 0) Remount();
    }
    for (const VerifiedFile& file : files_) file.CheckAll();
  }

  uint64_t done() const { return done_ - 1; }

  void PrintLog() const {
    for (const std::string& line : log_) std::printf("%s\n", line.c_str());
  }

 private:
  using Operation = void (Run::*)(VerifiedFile&);
  struct Choice {
    unsigned weight;
    Operation operation;
  };

  static constexpr std::array<Choice, 16> Choices() {
    return {{{18, &Run::Read},
             {18, &Run::Write},
             {4, &Run::Append},
             {10, &Run::MapRead},
             {10, &Run::MapWrite},
             {5, &Run::Truncate},
             {3, &Run::TruncatePath},
             {5, &Run::Punch},
             {4, &Run::Zero},
             {2, &Run::Extend},
             {6, &Run::Copy},
             {4, &Run::Seek},
             {3, &Run::Reopen},
             {2, &Run::Sync},
             {2, &Run::Rename},
             {1, &Run::Check}}};
  }

  void Step() {
    constexpr auto kChoices = Choices();
    unsigned total = 0;
    for (const Choice& choice : kChoices) total += choice.weight;
    auto place = static_cast<unsigned>(random_.Below(total));
    VerifiedFile& file = files_[random_.Below(files_.size())];
    for (const Choice& choice : kChoices) {
      if (place < choice.weight) return (this->*choice.operation)(file);
      place -= choice.weight;
    }
  }

  // Numbers are logged before the call, so that the log ends with the one that failed.
  void Log(const char* name, const VerifiedFile& file, size_t offset, size_t size,
           const std::string& more = "") {
    constexpr size_t kLines = 400;
    std::string line = std::to_string(done_) + " " + name + " " +
                       file.path().substr(options_.directory.size() + 1);
    line += " at " + std::to_string(offset) + " size " + std::to_string(size) + " " + more;
    line += " (file " + std::to_string(file.size()) + ")";
    log_.push_back(std::move(line));
    if (log_.size() > kLines) log_.pop_front();
  }

  // Small, about a page, or a good part of a file; often at the edge of a page or a chunk.
  size_t Size() {
    const std::array<size_t, 4> limits = {64, 5000, 70'000, options_.largest / 2};
    return 1 + random_.Below(random_.Pick(limits));
  }

  size_t Place(size_t limit) {
    constexpr std::array<size_t, 3> kGrains = {1, 4096, 262'144};
    const size_t grain = random_.Percent(60) ? 1 : random_.Pick(kGrains);
    return random_.Below(limit + 1) / grain * grain;
  }

  // A range that leaves the file within its limit.
  std::pair<size_t, size_t> RangeWithin(size_t limit) {
    const size_t offset = Place(limit - 1);
    return {offset, std::min(Size(), limit - offset)};
  }

  std::string Data(size_t size) { return e2e::Pattern(options_.seed ^ (done_ << 16), size); }

  void Read(VerifiedFile& file) {
    const auto [offset, size] = RangeWithin(options_.largest);
    Log("read", file, offset, size);
    file.Read(offset, size);
  }

  void Write(VerifiedFile& file) {
    auto [offset, size] = RangeWithin(options_.largest);
    if ((file.flags() & O_APPEND) != 0) size = std::min(size, options_.largest - file.size());
    Log("write", file, offset, size, (file.flags() & O_APPEND) != 0 ? "appending" : "");
    file.Write(offset, Data(size));
  }

  void Append(VerifiedFile& file) {
    const size_t size = std::min(Size() % 5000, options_.largest - file.size());
    Log("append", file, file.size(), size);
    file.Write(file.size(), Data(size));
  }

  void MapRead(VerifiedFile& file) {
    if (file.size() == 0) return;
    const auto [offset, size] = RangeWithin(file.size());
    Log("mapread", file, offset, size);
    file.MapRead(offset, size);
  }

  void MapWrite(VerifiedFile& file) {
    if (file.size() == 0) return;
    const auto [offset, size] = RangeWithin(file.size());
    const bool sync = random_.Percent(20);
    Log("mapwrite", file, offset, size, sync ? "msync" : "");
    file.MapWrite(offset, Data(size), sync);
  }

  void Truncate(VerifiedFile& file) {
    const size_t size = Place(options_.largest);
    Log("ftruncate", file, 0, size);
    file.Resize(size, false);
  }

  void TruncatePath(VerifiedFile& file) {
    const size_t size = Place(options_.largest);
    Log("truncate", file, 0, size);
    file.Resize(size, true);
  }

  void Punch(VerifiedFile& file) {
    const auto [offset, size] = RangeWithin(options_.largest);
    Log("punch", file, offset, size);
    file.Allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
  }

  void Zero(VerifiedFile& file) {
    if (options_.no_zero_range) return;
    const auto [offset, size] = RangeWithin(options_.largest);
    const int keep = random_.Percent(50) ? FALLOC_FL_KEEP_SIZE : 0;
    Log("zero", file, offset, size, keep != 0 ? "keeping the size" : "");
    file.Allocate(FALLOC_FL_ZERO_RANGE | keep, offset, size);
  }

  void Extend(VerifiedFile& file) {
    const auto [offset, size] = RangeWithin(options_.largest);
    Log("fallocate", file, offset, size);
    file.Allocate(0, offset, size);
  }

  void Copy(VerifiedFile& file) {
    VerifiedFile& source = files_[random_.Below(files_.size())];
    if (source.size() == 0 || (file.flags() & O_APPEND) != 0) return;
    auto [from, size] = RangeWithin(source.size());
    const size_t to = Place(options_.largest - size);
    if (&source == &file && from < to + size && to < from + size) return;
    Log("copy", file, to, size, "from " + source.path() + " at " + std::to_string(from));
    file.CopyFrom(source, from, to, size);
  }

  void Seek(VerifiedFile& file) {
    if (file.size() == 0) return;
    const size_t offset = Place(file.size() - 1);
    Log("seek", file, offset, 0);
    file.Seek(offset);
  }

  void Reopen(VerifiedFile& file) {
    constexpr std::array kFlags = {0, 0, 0, O_APPEND, O_SYNC, O_TRUNC};
    const int flags = random_.Pick(kFlags);
    Log("reopen", file, 0, 0, std::to_string(flags));
    file.Close();
    file.Open(flags);
  }

  void Sync(VerifiedFile& file) {
    Log("fsync", file, 0, 0);
    file.Sync(random_.Percent(50));
  }

  void Rename(VerifiedFile& file) {
    const std::string path = options_.directory + "/renamed-" + std::to_string(done_);
    Log("rename", file, 0, 0, path);
    file.Rename(path);
  }

  void Check(VerifiedFile& file) {
    Log("check", file, 0, 0);
    file.CheckAll();
  }

  void Damage() {
    for (VerifiedFile& file : files_) {
      if (file.size() > 0 && (file.flags() & O_APPEND) == 0) return file.Damage(file.size() / 2);
    }
  }

  void Remount() {
    for (VerifiedFile& file : files_) file.Close();
    Log("remount", files_.front(), 0, 0);
    if (std::system(options_.remount.c_str()) != 0) throw Mismatch("remounting failed");
    for (VerifiedFile& file : files_) {
      file.Open(0);
      file.CheckAll();
    }
  }

  const Options options_;
  e2e::Random random_;
  std::vector<VerifiedFile> files_;
  std::deque<std::string> log_;
  uint64_t done_ = 0;
};

int Main(const Options& options) {
  Run run(options);
  try {
    run.Go();
  } catch (const std::exception& error) {
    run.PrintLog();
    std::printf("fsx: seed %lu, operation %lu: %s\n", options.seed, run.done() + 1, error.what());
    return 1;
  }
  std::printf("fsx: seed %lu, %lu operations on %zu files, all as expected\n", options.seed,
              run.done(), options.files);
  return 0;
}

void AddOptions(CLI::App* app, Options* options) {
  app->add_option("--directory", options->directory, "Where the files are made")->required();
  app->add_option("--seed", options->seed, "Seed of the operations");
  app->add_option("--operations", options->operations, "How many");
  app->add_option("--seconds", options->seconds, "Go on for this long instead");
  app->add_option("--files", options->files, "Of how many files");
  app->add_option("--largest", options->largest, "Their greatest size");
  app->add_option("--remount", options->remount, "A command that mounts anew");
  app->add_option("--remount-each", options->remount_each, "Operations between remounts");
  app->add_flag("--no-zero-range", options->no_zero_range, "tmpfs does not know it");
  app->add_option("--damage-each", options->damage_each, "Spoil a byte after each so many");
}

}  // namespace
}  // namespace memoirfs::fsx

int main(int argc, char** argv) {
  memoirfs::fsx::Options options;
  CLI::App app("Compares files with what they must hold, change by change.");
  AddOptions(&app, &options);
  CLI11_PARSE(app, argc, argv);
  try {
    return memoirfs::fsx::Main(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fsx: %s\n", error.what());
    return 2;
  }
}
