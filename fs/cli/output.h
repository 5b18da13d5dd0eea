#pragma once

// What a command prints: facts to stdout, as text or with --json as JSON; errors to stderr; a
// progress bar on a terminal's stderr. Colour only on a terminal, and not with NO_COLOR. What
// people read is escaped here, once, whatever names and messages it is made of.

#include <string>
#include <string_view>
#include <vector>

#include "store/base/status.h"
#include "store/volume/verify.h"

namespace memoirfs::cli {

// Exit codes, the same for every command; in the manual page.
enum ExitCode : int { kSuccess = 0, kFailure = 1, kUsage = 2, kNothing = 3 };

enum class Colour { kRed, kGreen, kYellow, kDim };

class Output {
 public:
  explicit Output(bool json);

  bool json() const { return json_; }
  // A line of text, as Printable shows it; nothing with --json.
  void Text(std::string_view line) const;
  // The same, with `label` before it in a colour where stdout is a terminal.
  void Text(Colour colour, std::string_view label, std::string_view rest = {}) const;
  // A line of JSON; nothing without --json.
  void Json(std::string_view line) const;
  // Bytes as they are, to stdout. kIo when they cannot be written.
  Status Raw(ByteView bytes) const;
  // Columns aligned by their widest cell, each as Printable shows it; the first row is the heading.
  void Table(const std::vector<std::vector<std::string>>& rows) const;

  // "memoirfs: <what>: <why>" on stderr, with --json an error object on stdout too; the exit code.
  int Fail(std::string_view what, const Status& status) const;
  // "memoirfs: <text>" on stderr.
  void Warn(std::string_view text) const;

 private:
  const bool json_;
  const bool colour_;
};

// One line that is drawn over, only where stderr is a terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // takes the line away
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(const volume::VerifyProgress& progress);

 private:
  const bool enabled_;
  bool drawn_ = false;
};

// "1.4 MiB"; exact below 1 KiB.
std::string HumanBytes(uint64_t bytes);

}  // namespace memoirfs::cli
