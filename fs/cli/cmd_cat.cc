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

void AddCat(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cat", "Print a file, or a kept version of it");
  command->add_option("AGENT", options->agent, "The agent")->required();
  command
      ->add_option("PATH", options->path,
                   "A file of its memory; PATH@SEQ: as record SEQ of the chain left it")
      ->type_name("PATH[@SEQ]")
      ->required();
  command
      ->add_option("--seq", options->seq,
                   "As PATH@SEQ, for a path that ends in '@' and digits itself")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SEQ");
  command->callback([&invocation, options] {
    invocation.run = [options](const Invocation& i, const Output& o) {
      return Run(*options, i, o);
    };
  });
}

}  // namespace memoirfs::cli
