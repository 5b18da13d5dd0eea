#pragma once

// How libfuse reads requests and writes answers: on the device, or on a socket in tests. The
// session's userdata is its SessionContext.

#include <fuse_lowlevel.h>

namespace memoirfs::fuse {

// The device itself. The answer to INIT is completed on its way: libfuse 3.14 takes the wish for
// parallel look-ups in one directory, but does not pass it on to the kernel.
const fuse_custom_io& DeviceIo();

// A datagram socket whose other end plays the kernel.
const fuse_custom_io& SocketIo();

}  // namespace memoirfs::fuse
