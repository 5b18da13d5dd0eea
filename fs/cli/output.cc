#include "fs/cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "fs/daemon/request.h"
#include "store/base/printable.h"

namespace memoirfs::cli {
namespace {

bool WantsColour() {
  const char* no_colour = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

std::string_view EscapeOf(Colour colour) {
  switch (colour) {
    case Colour::kRed:
      return "\033[31m";
    case Colour::kGreen:
      return "\033[32m";
    case Colour::kYellow:
      return "\033[33m";
    case Colour::kDim:
      return "\033[2m";
  }
  return "";
}

// Columns of what Printable shows on a terminal, near enough: code points, the wide ones of East
// Asia as two.
size_t Width(std::string_view text) {
  size_t width = 0;
  for (const char c : Printable(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) == 0x80) continue;
    width += byte >= 0xe1 ? 2 : 1;
  }
  return width;
}

void PrintLine(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

// What cannot be said there cannot be said anywhere: a closed stderr is no reason to fail.
void PrintError(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

Output::Output(bool json) : json_(json), colour_(WantsColour()) {}

void Output::Text(std::string_view line) const {
  if (!json_) PrintLine(Printable(line));
}

void Output::Text(Colour colour, std::string_view label, std::string_view rest) const {
  if (json_) return;
  const std::string shown = Printable(label);
  PrintLine((colour_ ? fmt::format("{}{}\033[0m", EscapeOf(colour), shown) : shown) +
            Printable(rest));
}

void Output::Json(std::string_view line) const {
  if (json_) PrintLine(line);
}

Status Output::Raw(ByteView bytes) const {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    return Status::FromErrno(errno, "write to stdout");
  }
  return {};
}

void Output::Table(const std::vector<std::vector<std::string>>& rows) const {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (&row == &rows.front()) {
      Text(Colour::kDim, line);
    } else {
      Text(line);
    }
  }
}

int Output::Fail(std::string_view what, const Status& status) const {
  Json(daemon::ErrorJson(status));
  PrintError(fmt::format("memoirfs: {}: {}\n", what, Printable(status.ToString())));
  return kFailure;
}

void Output::Warn(std::string_view text) const {
  PrintError(fmt::format("memoirfs: {}\n", Printable(text)));
}

ProgressBar::ProgressBar() : enabled_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (drawn_) PrintError("\r\033[K");
}

void ProgressBar::Show(const volume::VerifyProgress& progress) {
  if (!enabled_) return;
  constexpr uint64_t kWidth = 30;
  const uint64_t total = std::max<uint64_t>(progress.total, 1);
  const uint64_t done = std::min(progress.done, total);
  const uint64_t filled =
      static_cast<uint64_t>(static_cast<double>(done) / static_cast<double>(total) * kWidth);
  PrintError(fmt::format("\r\033[K{:<12} [{}{}] {}/{}", Printable(progress.what),
                         std::string(filled, '#'), std::string(kWidth - filled, ' '), progress.done,
                         progress.total));
  drawn_ = true;
}

std::string HumanBytes(uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace memoirfs::cli
