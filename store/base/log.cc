#include "store/base/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <utility>

#include "store/base/printable.h"
#include "store/base/regular_file.h"

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

// To a file that is open already: a sink of spdlog's own would open it again by its name, and wait
// where a FIFO took the place. A line that can't be written is lost; there is nobody to tell.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(UniqueFd file) : file_(std::move(file)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view rest(line.data(), line.size());
    while (!rest.empty()) {
      const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      rest.remove_prefix(static_cast<size_t>(n));
    }
  }
  void flush_() override {}

 private:
  const UniqueFd file_;
};

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
  ASSIGN_OR_RETURN(UniqueFd file, OpenRegularFile(path, O_WRONLY | O_CREAT | O_APPEND));
  auto logger = MakeLogger(std::make_shared<FileSink>(std::move(file)));
  const std::lock_guard lock(TheSink().mutex);
  logger->set_level(TheSink().logger->level());
  TheSink().logger = std::move(logger);
  return {};
}

void SetLogLevel(LogLevel least) { Current()->set_level(LevelOf(least)); }

}  // namespace memoirfs
