#include "fs/cli/bench/report.h"

#include <fmt/format.h>

#include "store/base/json.h"
#include "store/base/printable.h"

namespace memoirfs::bench {
namespace {

constexpr int kTitleWidth = 30;
constexpr int kColumnWidth = 34;

std::string_view ColdnessNote(const RowResult& result) {
  if (!result.coldness) return "";
  return *result.coldness == Coldness::kCold ? "cold" : "not cold: needs root";
}

std::string Cell(const Summary& summary, double ratio) {
  const int digits = summary.median < 10 ? 2 : summary.median < 100 ? 1 : 0;
  return fmt::format("{:.{}f} ({:.{}f}..{:.{}f}) x{:.3g}", summary.median, digits, summary.min,
                     digits, summary.max, digits, ratio);
}

double Ratio(const RowResult& result, size_t directory) {
  return result.directories[directory].median / result.directories.front().median;
}

std::string HowItWasDone(const Report& report) {
  return fmt::format(
      "\nMedian (lowest..highest) of {} rounds, interleaved over the directories after one round "
      "for warming up;\nxN: the median's ratio to the first directory. Times are of one operation. "
      "The big file has {} MiB.\nCold rows: files synced, posix_fadvise(DONTNEED) on each, then "
      "the "
      "kernel's caches dropped, which also\nforgets the pages of a FUSE mount; what its daemon "
      "holds "
      "in its own memory stays.\n",
      report.rounds, report.big_bytes >> 20U);
}

}  // namespace

std::string ReportText(const Report& report) {
  std::string text = fmt::format("{:<{}}{:<7}", "", kTitleWidth, "unit");
  for (size_t number = 0; number < report.directories.size(); ++number) {
    text += fmt::format("{:<{}}", fmt::format("[{}]", number + 1), kColumnWidth);
  }
  text += "\n";
  for (const RowResult& result : report.rows) {
    text += fmt::format("{:<{}}{:<7}", result.row->title, kTitleWidth, result.row->unit);
    for (size_t number = 0; number < result.directories.size(); ++number) {
      text += fmt::format("{:<{}}", Cell(result.directories[number], Ratio(result, number)),
                          kColumnWidth);
    }
    text += fmt::format("{}\n", ColdnessNote(result));
  }
  text += "\n";
  for (size_t number = 0; number < report.directories.size(); ++number) {
    text += fmt::format("[{}] {}\n", number + 1, Printable(report.directories[number]));
  }
  return text + HowItWasDone(report);
}

std::string ReportJson(const Report& report) {
  Json rows = Json::array();
  for (const RowResult& result : report.rows) {
    Json row = {{"name", result.row->name},
                {"title", result.row->title},
                {"unit", result.row->unit},
                {"higher_is_better", result.row->higher_is_better},
                {"results", Json::array()}};
    if (result.coldness) row["cold"] = *result.coldness == Coldness::kCold;
    for (size_t number = 0; number < result.directories.size(); ++number) {
      const Summary& summary = result.directories[number];
      row["results"].push_back({{"directory", report.directories[number]},
                                {"median", summary.median},
                                {"min", summary.min},
                                {"max", summary.max},
                                {"ratio", Ratio(result, number)}});
    }
    rows.push_back(std::move(row));
  }
  const Json json = {{"directories", report.directories},
                     {"rounds", report.rounds},
                     {"big_bytes", report.big_bytes},
                     {"rows", std::move(rows)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace memoirfs::bench
