#include <algorithm>

#include "fs/cli/commands.h"
#include "fs/cli/path_at_seq.h"
#include "fs/cli/store_access.h"

namespace memoirfs::cli {
namespace {

struct Options {
  std::string agent;
  std::string path;
  std::optional<uint64_t> seq;
};

// Every piece was verified before it came here.
class BytesSink final : public ConsoleSink {
 public:
  explicit BytesSink(const Output& output) : output_(output) {}
  Status Data(ByteView bytes) override { return output_.Raw(bytes); }

 private:
  const Output& output_;
};

int Run(const Options& options, const Invocation& invocation, const Output& output) {
  BytesSink sink(output);
  const auto ask = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::string store, invocation.StorePath());
    daemon::Request request{.operation = daemon::Operation::kCat};
    request.agent = options.agent;
    request.path = options.path;
    request.seq = options.seq;
    if (!request.seq) std::tie(request.path, request.seq) = SplitPathAtSeq(options.path);
    return Ask(store, request, Access::kRead, sink).status();
  };
  const Status status = ask();
  return status.ok() ? kSuccess : output.Fail("cat", status);
}

}  // namespace

void AddCat(Command& root) {
  const auto options = std::make_shared<Options>();
  Command command = root.Add("cat", "Print a file, or a kept version of it");
  command.Value({.name = "AGENT", .help = "The agent", .required = true}, options->agent);
  command.Value({.name = "PATH",
                 .help = "A file of its memory; PATH@SEQ: as record SEQ of the chain left it",
                 .type = "PATH[@SEQ]",
                 .required = true},
                options->path);
  command.Value({.name = "--seq",
                 .help = "As PATH@SEQ, for a path that ends in '@' and digits itself",
                 .type = "SEQ"},
                options->seq);
  command.Runs([options](const Invocation& i, const Output& o) { return Run(*options, i, o); });
}

}  // namespace memoirfs::cli
