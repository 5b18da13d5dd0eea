#include "fs/cli/commands.h"
#include "fs/cli/store_access.h"
#include "store/base/json.h"
#include "store/chain/record.h"

namespace memoirfs::cli {
namespace {

constexpr uint64_t kDefaultLimit = 50;

struct Options {
  std::string agent;
  std::string path;
  uint64_t limit = kDefaultLimit;
  uint64_t since_seq = 0;
};

using Row = std::vector<std::string>;

// What the store itself records has no actor.
std::string Who(const chain::Actor& actor) {
  if (actor == chain::Actor{}) return "";
  if (actor.pid == 0) return "uid " + std::to_string(actor.uid);
  return actor.comm + "[" + std::to_string(actor.pid) + "] uid " + std::to_string(actor.uid);
}

// A rename's path is where it went.
std::string PathOf(const chain::Change& change) {
  if (change.op != chain::Op::kRename) return change.path;
  return chain::RenameSource(change) + " -> " + change.path;
}

Row RowOf(const chain::ParsedRecord& record) {
  const chain::Change& change = record.change;
  // Seconds are enough for people; --json has all nine digits.
  return {record.agent,
          std::to_string(record.seq.value),
          record.ts_text.substr(0, 19) + "Z",
          std::string(chain::OpName(change.op)),
          PathOf(change),
          change.content ? HumanBytes(change.content->size) : "",
          Who(change.actor)};
}

// Prints each record as it comes with --json, and keeps rows for a table otherwise.
class LogSink final : public ConsoleSink {
 public:
  explicit LogSink(const Output& output) : output_(output) {}

  Status Item(const std::string& json) override {
    ASSIGN_OR_RETURN(const Json item, ParseJson(json));
    const std::string line = item.value("line", std::string());
    output_.Json(line);
    if (output_.json()) return {};
    ASSIGN_OR_RETURN(const chain::ParsedRecord record, chain::ParseRecord(line));
    rows_.push_back(RowOf(record));
    return {};
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  const Output& output_;
  std::vector<Row> rows_ = {{"AGENT", "SEQ", "TIME", "OP", "PATH", "SIZE", "WHO"}};
};

int Run(const Options& options, const Invocation& invocation, const Output& output) {
  LogSink sink(output);
  const auto ask = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
    daemon::Request request{.operation = daemon::Operation::kLog};
    if (!options.agent.empty()) request.agent = options.agent;
    request.path = options.path;
    request.limit = options.limit;
    request.since_seq = options.since_seq;
    return Ask(store, request, Access::kRead, sink).status();
  };
  if (const Status status = ask(); !status.ok()) return output.Fail("log", status);
  if (sink.rows().size() > 1) {
    output.Table(sink.rows());
  } else {
    output.Text(options.path.empty() ? "No records" : "No record of " + options.path);
  }
  return kSuccess;
}

}  // namespace

void AddLog(Command& root) {
  const auto options = std::make_shared<Options>();
  Command command = root.Add("log", "Show the chain: what changed, when, by whom");
  command.Value({.name = "AGENT", .help = "Only this agent's chain"}, options->agent);
  command.Value({.name = "PATH", .help = "Only this file, or what is below this directory"},
                options->path);
  command.Value({.name = "--limit", .help = "The newest N records; 0: all", .type = "N"},
                options->limit);
  command.Value({.name = "--since-seq", .help = "Only records after number N", .type = "N"},
                options->since_seq);
  command.Runs([options](const Invocation& i, const Output& o) { return Run(*options, i, o); });
}

}  // namespace memoirfs::cli
