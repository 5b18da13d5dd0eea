#include "fs/vfs/vfs.h"

#include <chrono>

#include "fs/vfs/core.h"
#include "fs/vfs/view_impl.h"

namespace memoirfs::vfs {
namespace {

constexpr std::chrono::seconds kPatience(5);

}  // namespace

Vfs::Vfs(volume::Volume& volume, VfsOptions options)
    : core_(std::make_shared<Core>(volume, options)) {}

Vfs::~Vfs() = default;

Result<std::unique_ptr<View>> Vfs::OpenView(const ViewOptions& options, KernelNotifier* notifier) {
  std::optional<StreamId> only;
  if (options.agent) {
    ASSIGN_OR_RETURN(const volume::AgentFacts agent, core_->volume().FindAgent(*options.agent));
    only = agent.stream;
  }
  return std::unique_ptr<View>(
      std::make_unique<ViewImpl>(core_, only, options.read_only, notifier));
}

Status Vfs::CommitAll() {
  return core_->CommitWhere([](LiveInode&) { return true; });
}

void Vfs::RunJanitorOnce() { core_->RunJanitorOnce(); }

void Vfs::SetStatusSource(StatusSource source) { core_->SetStatusSource(std::move(source)); }

uint64_t Vfs::dirty_bytes() const { return core_->budget().used(); }

uint64_t Vfs::open_files() const { return core_->open_files().load(); }

void Vfs::AgentChanged(const std::string& name) {
  Notifications& notifications = core_->notifications();
  notifications.Post(ViewId{}, std::nullopt, Event{Event::Kind::kEntry, kRootNode, name});
  notifications.WaitUntilTold(kPatience);
}

}  // namespace memoirfs::vfs
