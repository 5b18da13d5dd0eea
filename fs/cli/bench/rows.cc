#include "fs/cli/bench/rows.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace memoirfs::bench {
namespace {

constexpr size_t kSmall = 4096;
constexpr size_t kReadBlock = 1 << 20;
constexpr int kDurableSaves = 40;
constexpr int kWriters = 16;
constexpr int kSavesAWriter = 10;
constexpr int kSaves = 400;
constexpr int kWarmReads = 20'000;
constexpr int kListed = 1000;    // entries of the folder that is listed
constexpr int kStatRounds = 10;  // over those entries
constexpr int kListings = 20;
constexpr int kOpens = 4000;
constexpr int kColdFiles = 500;

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double MicrosecondsAnOperation(int operations) const { return Seconds() * 1e6 / operations; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string Numbered(const Workspace& workspace, std::string_view folder, int number) {
  return workspace.Path(folder) + "/" + std::to_string(number);
}

Status FillFolder(const Workspace& workspace, std::string_view folder, int count) {
  TRY(workspace.MakeFolder(folder));
  for (int number = 0; number < count; ++number) {
    TRY(WriteFile(Numbered(workspace, folder, number), Noise(kSmall, number)));
  }
  return {};
}

// --- saving ------------------------------------------------------------------------------------

// As a careful program saves: both the content and the name survive a power cut afterwards.
Status SaveDurably(const std::string& path, const Fd& folder, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  ASSIGN_OR_RETURN(Fd fd, Open(temporary, O_CREAT | O_WRONLY | O_TRUNC));
  TRY(WriteAll(fd, bytes));
  TRY(Fsync(fd));
  TRY(fd.Close());
  TRY(Rename(temporary, path));
  return Fsync(folder);
}

Status SaveDurablyOften(const Workspace& workspace, std::string_view name, int count,
                        uint64_t seed) {
  ASSIGN_OR_RETURN(const Fd folder, Open(workspace.folder(), O_RDONLY | O_DIRECTORY));
  std::string bytes = Noise(kSmall, seed);
  for (int number = 0; number < count; ++number) {
    bytes[0] = static_cast<char>(number);  // new content each time
    TRY(SaveDurably(workspace.Path(name), folder, bytes));
  }
  return {};
}

uint64_t NewSeed() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

Result<double> MeasureDurableSave(RowContext& context) {
  const Stopwatch watch;
  TRY(SaveDurablyOften(context.workspace, "note", kDurableSaves, NewSeed()));
  return watch.MicrosecondsAnOperation(kDurableSaves);
}

Result<double> MeasureDurableSaveOfMany(RowContext& context) {
  std::array<Status, kWriters> results;
  const uint64_t seed = NewSeed();
  const Stopwatch watch;
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int number = 0; number < kWriters; ++number) {
    writers.emplace_back([&, number] {
      results[static_cast<size_t>(number)] =
          SaveDurablyOften(context.workspace, "note" + std::to_string(number), kSavesAWriter,
                           seed + static_cast<uint64_t>(number));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const double time = watch.MicrosecondsAnOperation(kWriters * kSavesAWriter);
  for (const Status& result : results) TRY(result);
  return time;
}

Result<double> MeasureSave(RowContext& context) {
  std::vector<std::string> paths;
  paths.reserve(kSaves);
  for (int number = 0; number < kSaves; ++number) paths.push_back(context.workspace.FreshPath());
  std::string bytes = Noise(kSmall, NewSeed());
  const Stopwatch watch;
  for (size_t number = 0; number < paths.size(); ++number) {
    bytes[0] = static_cast<char>(number);
    bytes[1] = static_cast<char>(number >> 8U);
    TRY(WriteFile(paths[number], bytes));
  }
  const double time = watch.MicrosecondsAnOperation(kSaves);
  for (const std::string& path : paths) TRY(Remove(path));
  return time;
}

// --- warm --------------------------------------------------------------------------------------

Status PrepareWarm(RowContext& context) { return FillFolder(context.workspace, "warm", kListed); }

Result<double> MeasureWarmRead(RowContext& context) {
  ASSIGN_OR_RETURN(const Fd fd, Open(Numbered(context.workspace, "warm", 0), O_RDONLY));
  std::array<char, kSmall> buffer{};
  const auto read = [&]() -> Status {
    if (::pread(fd.get(), buffer.data(), buffer.size(), 0) == kSmall) return {};
    return Status::FromErrno(errno, "pread");
  };
  TRY(read());
  const Stopwatch watch;
  for (int number = 0; number < kWarmReads; ++number) TRY(read());
  return watch.MicrosecondsAnOperation(kWarmReads);
}

Status StatAll(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    struct stat facts = {};
    if (::stat(path.c_str(), &facts) != 0) return Status::FromErrno(errno, "stat " + path);
  }
  return {};
}

Result<double> MeasureWarmStat(RowContext& context) {
  std::vector<std::string> paths;
  paths.reserve(kListed);
  for (int number = 0; number < kListed; ++number) {
    paths.push_back(Numbered(context.workspace, "warm", number));
  }
  TRY(StatAll(paths));
  const Stopwatch watch;
  for (int round = 0; round < kStatRounds; ++round) TRY(StatAll(paths));
  return watch.MicrosecondsAnOperation(kStatRounds * kListed);
}

Status ListOnce(const std::string& folder) {
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return Status::FromErrno(errno, "opendir " + folder);
  int count = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else has the stream
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  if (count == kListed + 2) return {};
  return Status(Code::kInternal, "listing " + folder + " gave " + std::to_string(count) +
                                     " entries, not " + std::to_string(kListed + 2));
}

Result<double> MeasureWarmListing(RowContext& context) {
  const std::string folder = context.workspace.Path("warm");
  TRY(ListOnce(folder));
  const Stopwatch watch;
  for (int number = 0; number < kListings; ++number) TRY(ListOnce(folder));
  return watch.MicrosecondsAnOperation(kListings);
}

Status OpenReadClose(const std::string& path) {
  ASSIGN_OR_RETURN(Fd fd, Open(path, O_RDONLY));
  std::array<char, kSmall> buffer{};
  if (::read(fd.get(), buffer.data(), buffer.size()) != kSmall) {
    return Status::FromErrno(errno, "read " + path);
  }
  return fd.Close();
}

Result<double> MeasureOpenReadClose(RowContext& context) {
  const std::string path = Numbered(context.workspace, "warm", 1);
  TRY(OpenReadClose(path));
  const Stopwatch watch;
  for (int number = 0; number < kOpens; ++number) TRY(OpenReadClose(path));
  return watch.MicrosecondsAnOperation(kOpens);
}

// --- cold --------------------------------------------------------------------------------------

Status PrepareColdSmall(RowContext& context) {
  return FillFolder(context.workspace, "cold", kColdFiles);
}

Result<double> MeasureColdSmall(RowContext& context) {
  const Stopwatch watch;
  for (int number = 0; number < kColdFiles; ++number) {
    TRY(OpenReadClose(Numbered(context.workspace, "cold", number)));
  }
  return watch.MicrosecondsAnOperation(kColdFiles);
}

Status PrepareBig(RowContext& context) {
  ASSIGN_OR_RETURN(Fd fd, Open(context.workspace.Path("big"), O_CREAT | O_WRONLY | O_TRUNC));
  for (uint64_t done = 0; done < context.big_bytes; done += kReadBlock) {
    TRY(WriteAll(fd, Noise(kReadBlock, done)));
  }
  TRY(Fsync(fd));
  return fd.Close();
}

Result<double> MeasureBig(RowContext& context) {
  ASSIGN_OR_RETURN(const Fd fd, Open(context.workspace.Path("big"), O_RDONLY));
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const size_t size, ReadAll(fd, kReadBlock));
  return static_cast<double>(size) / (1 << 20) / watch.Seconds();
}

constexpr std::string_view kMicroseconds = "µs";

// In this order: the warm rows use the folder that the first of them fills.

constexpr std::array kRows = {
    Row{"durable_save", "durable save, 4 KiB", kMicroseconds, false, false, nullptr,
        MeasureDurableSave},
    Row{"durable_save_16", "the same, 16 writers", kMicroseconds, false, false, nullptr,
        MeasureDurableSaveOfMany},
    Row{"save", "save without fsync, 4 KiB", kMicroseconds, false, false, nullptr, MeasureSave},
    Row{"warm_read", "warm read, open file", kMicroseconds, false, false, PrepareWarm,
        MeasureWarmRead},
    Row{"warm_stat", "warm stat", kMicroseconds, false, false, nullptr, MeasureWarmStat},
    Row{"warm_listing", "warm listing, 1,000 entries", kMicroseconds, false, false, nullptr,
        MeasureWarmListing},
    Row{"warm_open_read_close", "warm open, read, close", kMicroseconds, false, false, nullptr,
        MeasureOpenReadClose},
    Row{"cold_read_small", "cold read, 4 KiB files", kMicroseconds, false, true, PrepareColdSmall,
        MeasureColdSmall},
    Row{"cold_read_sequential", "cold read, one big file", "MiB/s", true, true, PrepareBig,
        MeasureBig},
};

}  // namespace

std::span<const Row> AllRows() { return kRows; }

}  // namespace memoirfs::bench
