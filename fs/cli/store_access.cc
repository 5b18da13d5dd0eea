#include "fs/cli/store_access.h"

#include <unistd.h>

#include "fs/daemon/control_client.h"
#include "fs/daemon/open_store.h"
#include "fs/daemon/store_service.h"
#include "store/base/log.h"
#include "store/volume/store_lock.h"

namespace memoirfs::cli {
namespace {

Result<std::string> AskOffline(const std::string& store, const daemon::Request& request,
                               Access access, daemon::ReplySink& sink) {
  SetLogLevel(LogLevel::kWarn);  // what a daemon's log would hold is noise on a terminal
  daemon::OpenOptions options;
  options.read_only = access == Access::kRead;
  ASSIGN_OR_RETURN(const auto opened, daemon::OpenedStore::Open(store, options));
  daemon::ServingHooks hooks;
  daemon::StoreService service(*opened, hooks);
  return service.Handle(request, {::geteuid(), ::getegid(), ::getpid()}, sink);
}

}  // namespace

Status ConsoleSink::Progress(const volume::VerifyProgress& progress) {
  bar_.Show(progress);
  return {};
}

Status ConsoleSink::Item(const std::string& /*json*/) { return {}; }
Status ConsoleSink::Data(ByteView /*bytes*/) { return {}; }

Result<bool> IsServed(const std::string& store) {
  TRY(daemon::CheckStoreExists(store));
  ASSIGN_OR_RETURN(const auto holder, volume::StoreLock::Holder(store));
  return holder.has_value() && !holder->socket.empty();
}

Result<std::string> Ask(const std::string& store, const daemon::Request& request, Access access,
                        daemon::ReplySink& sink) {
  return Patiently([&]() -> Result<std::string> {
    ASSIGN_OR_RETURN(const bool served, IsServed(store));
    if (served) return daemon::AskDaemon(store, request, sink);
    return AskOffline(store, request, access, sink);
  });
}

Result<std::string> Ask(const std::string& store, const daemon::Request& request, Access access) {
  ConsoleSink sink;
  return Ask(store, request, access, sink);
}

}  // namespace memoirfs::cli
