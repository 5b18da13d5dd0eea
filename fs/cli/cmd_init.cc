#include "fs/cli/commands.h"
#include "fs/daemon/paths.h"
#include "store/base/file_io.h"
#include "store/base/json.h"
#include "store/volume/layout.h"
#include "store/volume/volume.h"

namespace memoirfs::cli {
namespace {

Status MakeParents(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? Status() : daemon::MakeDirectories(path.substr(0, slash));
}

// A store that is there already is fine when this version understands it.
Result<bool> InitOrCheck(const std::string& path) {
  TRY(MakeParents(path));
  const Status made = volume::InitStore(path);
  if (made.ok()) return true;
  if (made.code() != Code::kExists) return made;
  ASSIGN_OR_RETURN(const auto io, OpenRealIo(path));
  TRY(volume::ReadFormat(*io));
  TRY(volume::CheckDirectories(*io));
  return false;
}

int Run(const Invocation& invocation, const Output& output) {
  const Result<std::string> path = invocation.StorePath();
  if (!path.ok()) return output.Fail("init", path.status());
  const Result<bool> made = InitOrCheck(*path);
  if (!made.ok()) return output.Fail("init", made.status());
  output.Json(DumpJson(Json{{"store", *path}, {"created", *made}}));
  output.Text((*made ? "Made a store at " : "There is a store already at ") + *path);
  if (*made) output.Text("Next: memoirfs agent add NAME" + invocation.StoreOption());
  return kSuccess;
}

}  // namespace

void AddInit(Command& root) {
  Command command = root.Add("init", "Make a store");
  command.Runs(Run);
}

}  // namespace memoirfs::cli
