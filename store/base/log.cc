#include "store/base/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <mutex>

#include "store/base/printable.h"

namespace memoirfs {
namespace {

constexpr char kPattern[] = "%Y-%m-%dT%H:%M:%S.%fZ %l %v";

std::shared_ptr<spdlog::logger> MakeLogger(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("memoirfs", std::move(sink));
  logger->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(kPattern, spdlog::pattern_time_type::utc));
  logger->flush_on(spdlog::level::info);
  return logger;
}

// Swapped atomically by LogToFile; never destroyed while a thread may still log at exit.
struct Sink {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger =
      MakeLogger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
};

Sink& TheSink() {
  static Sink* const sink = new Sink;  // NOLINT: outlives every thread on purpose
  return *sink;
}

std::shared_ptr<spdlog::logger> Current() {
  const std::lock_guard lock(TheSink().mutex);
  return TheSink().logger;
}

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void Log(LogLevel level, std::string_view site, std::string_view text) {
  Current()->log(LevelOf(level), "{} {}", site, Printable(text));
}

Status LogToFile(const std::string& path) {
  // Created here so that the mode is ours, whatever the umask is.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return Status::FromErrno(errno, "log file " + path);
  ::close(fd);
  try {
    auto logger = MakeLogger(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
    const std::lock_guard lock(TheSink().mutex);
    logger->set_level(TheSink().logger->level());
    TheSink().logger = std::move(logger);
  } catch (const spdlog::spdlog_ex& e) {
    return Status(Code::kIo, "log file " + path + ": " + e.what());
  }
  return {};
}

void SetLogLevel(LogLevel least) { Current()->set_level(LevelOf(least)); }

}  // namespace memoirfs
