#pragma once

// How libfuse reads requests and writes answers: on the device, or on a socket in tests. The
// session's userdata is its SessionContext.
//
// Messages are completed on their way where libfuse 3.14 leaves out what the kernel offers: see
// channel.cc.

#include <fuse_lowlevel.h>

namespace memoirfs::fuse {

// The device itself.
const fuse_custom_io& DeviceIo();

// A datagram socket whose other end plays the kernel.
const fuse_custom_io& SocketIo();

// In the flags of OPEN, CREATE and WRITE as the operations see them: the file is to lose suid and
// sgid. No flag of open(2) has this bit. Said only where SessionContext::kill_privileges_told.
inline constexpr int kKillPrivileges = 1 << 30;

}  // namespace memoirfs::fuse
