#include "fs/cli/verify_report.h"

#include <fmt/format.h>

#include "fs/cli/store_access.h"
#include "store/base/json.h"

namespace memoirfs::cli {
namespace {

void PrintProblem(const Json& problem, const Output& output) {
  output.Text(Colour::kRed, "BROKEN  ", TextOf(problem, "what") + ": " + TextOf(problem, "where"));
  output.Text("        expected  " + TextOf(problem, "expected"));
  output.Text("        found     " + TextOf(problem, "found"));
}

class ProblemSink final : public ConsoleSink {
 public:
  Status Item(const std::string& json) override {
    ASSIGN_OR_RETURN(Json problem, ParseJson(json));
    problems_.push_back(std::move(problem));
    return {};
  }
  const Json& problems() const { return problems_; }

 private:
  Json problems_ = Json::array();
};

}  // namespace

Result<std::string> AskForReport(const std::string& store, const daemon::Request& request) {
  ProblemSink sink;
  ASSIGN_OR_RETURN(const std::string answer, Ask(store, request, Access::kRead, sink));
  ASSIGN_OR_RETURN(Json report, ParseJson(answer));
  report["problems"] = sink.problems();
  return DumpJson(report);
}

int PrintVerifyReport(const std::string& report, const Output& output) {
  output.Json(report);
  const Json json = Json::parse(report);
  const Json& problems = json.at("problems");
  const std::string verdict = json.at("verdict");
  for (const Json& problem : problems) PrintProblem(problem, output);
  const std::string counted =
      fmt::format("{} chain(s), {} record(s), {} object(s), {}, {} pack(s), level {}",
                  json.value("streams", 0ULL), json.value("records", 0ULL),
                  json.value("objects", 0ULL), HumanBytes(json.value("bytes", uint64_t{0})),
                  json.value("packs", 0ULL), TextOf(json, "level"));
  if (verdict == "intact") {
    output.Text(Colour::kGreen, "OK      ", counted);
    return kSuccess;
  }
  if (verdict == "empty") {
    output.Text("nothing to verify: no agent has a record yet");
    return kNothing;
  }
  output.Text(fmt::format("{} problem(s) in {}", problems.size(), counted));
  return kFailure;
}

}  // namespace memoirfs::cli
