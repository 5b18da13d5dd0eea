#include "fs/cli/bench/bench.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "fs/cli/bench/caches.h"
#include "fs/cli/bench/report.h"
#include "fs/cli/bench/rows.h"
#include "fs/cli/bench/workspace.h"
#include "store/base/printable.h"

namespace memoirfs::bench {
namespace {

volatile sig_atomic_t interrupted = 0;

// Looked at between rounds: whoever interrupts gets the folders taken away all the same.
void NoteSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    ::signal(number, [](int) { interrupted = 1; });
  }
}

Result<std::vector<Workspace>> MakeWorkspaces(const BenchOptions& options) {
  std::vector<Workspace> workspaces;
  for (const std::string& directory : options.directories) {
    ASSIGN_OR_RETURN(Workspace workspace, Workspace::Make(directory));
    workspaces.push_back(std::move(workspace));
  }
  return workspaces;
}

// One round of one row in one directory; notes whether the caches could be dropped.
Result<double> MeasureOnce(const Row& row, RowContext& context, RowResult& result) {
  if (interrupted != 0) return Status(Code::kInterrupted, "interrupted by a signal");
  if (row.cold) {
    ASSIGN_OR_RETURN(result.coldness, DropCaches(context.workspace.folder()));
  }
  return row.measure(context);
}

Result<RowResult> MeasureRow(const Row& row, const BenchOptions& options,
                             std::vector<Workspace>& workspaces) {
  RowResult result;
  result.row = &row;
  std::vector<std::vector<double>> values(workspaces.size());
  for (Workspace& workspace : workspaces) {
    RowContext context{workspace, options.big_bytes};
    if (row.prepare != nullptr) TRY(row.prepare(context));
  }
  for (unsigned round = 0; round <= options.rounds; ++round) {
    for (size_t number = 0; number < workspaces.size(); ++number) {
      RowContext context{workspaces[number], options.big_bytes};
      const Result<double> value = MeasureOnce(row, context, result);
      if (!value.ok()) return value.status().WithContext(workspaces[number].directory());
      if (round > 0) values[number].push_back(*value);  // the first round warms up
    }
  }
  for (std::vector<double>& each : values) {
    result.directories.push_back(Summarize(std::move(each)));
  }
  return result;
}

Result<Report> Measure(const BenchOptions& options) {
  ASSIGN_OR_RETURN(std::vector<Workspace> workspaces, MakeWorkspaces(options));
  Report report{options.directories, options.rounds, options.big_bytes, {}};
  for (const Row& row : AllRows()) {
    if (::isatty(STDERR_FILENO) != 0) {
      std::fprintf(stderr, "measuring: %.*s\n", static_cast<int>(row.title.size()),
                   row.title.data());
    }
    Result<RowResult> result = MeasureRow(row, options, workspaces);
    if (!result.ok()) return result.status().WithContext(row.title);
    report.rows.push_back(std::move(result).value());
  }
  return report;
}

}  // namespace

int RunBench(const BenchOptions& options) {
  NoteSignals();
  const Result<Report> report = Measure(options);
  if (!report.ok()) {
    std::fprintf(stderr, "bench: %s\n", Printable(report.status().ToString()).c_str());
    return 1;
  }
  const std::string text = options.json ? ReportJson(*report) : ReportText(*report);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace memoirfs::bench
