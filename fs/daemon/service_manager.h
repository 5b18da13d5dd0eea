#pragma once

#include <string_view>

namespace memoirfs::daemon {

// Tells the service manager that started this process, if one did, how it is: "READY=1". The
// protocol is sd_notify(3)'s: one datagram to the socket that $NOTIFY_SOCKET names. Nothing happens
// without it, and a failure is only logged: it is the manager's to notice.
void TellServiceManager(std::string_view state);

}  // namespace memoirfs::daemon
