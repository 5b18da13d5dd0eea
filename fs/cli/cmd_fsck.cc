#include <array>

#include "fs/cli/commands.h"
#include "fs/cli/store_access.h"
#include "fs/cli/verify_report.h"
#include "fs/daemon/open_store.h"
#include "store/base/clock.h"
#include "store/base/json.h"
#include "store/base/log.h"
#include "store/volume/repair.h"
#include "store/volume/spare.h"
#include "store/volume/store_lock.h"

namespace memoirfs::cli {
namespace {

// Where recovery and collection put what is not part of the store proper.
constexpr std::array<const char*, 3> kLeftoverFolders = {"staging", "quarantine", "trash"};

struct Leftovers {
  std::string folder;
  std::vector<std::string> names;
};

Result<std::vector<Leftovers>> FindLeftovers(FileIo& io) {
  std::vector<Leftovers> found;
  for (const char* folder : kLeftoverFolders) {
    Result<std::vector<std::string>> names = io.List(folder);
    if (names.code() == Code::kNotFound) continue;
    TRY(names);
    std::erase_if(*names, volume::IsSpare);
    if (!names->empty()) found.push_back({folder, std::move(names).value()});
  }
  return found;
}

Json ToJson(const std::vector<Leftovers>& leftovers) {
  Json json = Json::object();
  for (const Leftovers& folder : leftovers) json[folder.folder] = folder.names;
  return json;
}

void PrintLeftovers(const std::vector<Leftovers>& leftovers, const Output& output) {
  for (const Leftovers& folder : leftovers) {
    output.Text("left over in " + folder.folder + "/: " + std::to_string(folder.names.size()) +
                " file(s), for example " + folder.names.front());
  }
}

Status CheckNotServed(const std::string& store) {
  ASSIGN_OR_RETURN(const bool served, IsServed(store));
  if (!served) return {};
  return Status(Code::kLocked,
                "a daemon serves this store. Unmount all of its mounts first, or "
                "run 'memoirfs verify', which works beside it");
}

Result<std::string> Verify(const std::string& store) {
  return AskForReport(store, daemon::Request{.operation = daemon::Operation::kVerify});
}

// The report with `facts` beside it, and its exit code.
int Print(const Result<std::string>& report, const Json& facts, const Output& output) {
  if (!report.ok()) return output.Fail("fsck", report.status());
  Json json = Json::parse(*report);
  json.update(facts);
  return PrintVerifyReport(DumpJson(json), output);
}

int Examine(const std::string& store, const Output& output) {
  const auto find = [&]() -> Result<std::vector<Leftovers>> {
    TRY(CheckNotServed(store));
    ASSIGN_OR_RETURN(const auto io, OpenRealIo(store));
    return FindLeftovers(*io);
  };
  const Result<std::vector<Leftovers>> leftovers = find();
  if (!leftovers.ok()) return output.Fail("fsck", leftovers.status());
  PrintLeftovers(*leftovers, output);
  return Print(Verify(store), Json{{"leftovers", ToJson(*leftovers)}}, output);
}

Result<volume::RepairReport> RepairUnderLock(const std::string& store) {
  TRY(CheckNotServed(store));
  ASSIGN_OR_RETURN(const auto lock, volume::StoreLock::Acquire(store, ""));
  ASSIGN_OR_RETURN(const auto io, OpenRealIo(store));
  return volume::RepairStore(*io, Clock::Real());
}

bool IsSound(const Result<std::string>& report) {
  return report.ok() && Json::parse(*report).at("problems").empty();
}

// A sound store is left as it is. What stays broken behind a repair, a damaged pack for example, is
// listed.
int Repair(const std::string& store, const Output& output) {
  if (const Status served = CheckNotServed(store); !served.ok()) return output.Fail("fsck", served);
  if (const Result<std::string> report = Verify(store); IsSound(report)) {
    output.Text("Nothing to repair");
    const Json facts{{"rebuilt_records", 0}, {"notes", Json::array()}};
    const int exit_code = Print(report, facts, output);
    // A store without a record has nothing to verify, and is sound all the same.
    return exit_code == kNothing ? kSuccess : exit_code;
  }
  const Result<volume::RepairReport> report = RepairUnderLock(store);
  if (!report.ok()) return output.Fail("fsck", report.status());
  for (const std::string& note : report->notes) output.Text(note);
  output.Text("Rebuilt the index from " + std::to_string(report->records) + " record(s)");
  const Json facts{{"rebuilt_records", report->records}, {"notes", report->notes}};
  const int exit_code = Print(Verify(store), facts, output);
  return exit_code == kNothing ? kSuccess : exit_code;
}

int Run(bool repair, const Invocation& invocation, const Output& output) {
  const Result<std::string> store = invocation.StorePath();
  if (!store.ok()) return output.Fail("fsck", store.status());
  SetLogLevel(LogLevel::kWarn);
  return repair ? Repair(*store, output) : Examine(*store, output);
}

}  // namespace

void AddFsck(Command& root) {
  const auto repair = std::make_shared<bool>(false);
  Command command = root.Add("fsck", "Examine, or repair, a store that is not mounted");
  command.Flag("--repair", "Rebuild the index, adopt or put aside what is left over", *repair);
  command.Runs([repair](const Invocation& i, const Output& o) { return Run(*repair, i, o); });
}

}  // namespace memoirfs::cli
