#include "fs/fuse/libfuse_log.h"

#include <fuse_log.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "store/base/log.h"

namespace memoirfs::fuse {
namespace {

// libfuse's log function has no user data, so what it said is kept where it said it.
thread_local std::string last_message;

LogLevel LevelOf(fuse_log_level level) {
  if (level <= FUSE_LOG_ERR) return LogLevel::kError;
  if (level == FUSE_LOG_WARNING) return LogLevel::kWarn;
  return level == FUSE_LOG_DEBUG ? LogLevel::kDebug : LogLevel::kInfo;
}

void Receive(fuse_log_level level, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string message = text.data();
  while (!message.empty() && message.back() == '\n') message.pop_back();
  Log(LevelOf(level), "fuse.libfuse", message);
  last_message = std::move(message);
}

}  // namespace

void RouteLibfuseLog() {
  static std::once_flag once;
  std::call_once(once, [] { fuse_set_log_func(Receive); });
}

std::string TakeLibfuseMessage() { return std::exchange(last_message, std::string()); }

}  // namespace memoirfs::fuse
