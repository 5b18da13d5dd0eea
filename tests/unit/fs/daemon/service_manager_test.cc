// What a service manager hears: one datagram at the socket that the environment names.

#include "fs/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "store/base/unique_fd.h"
#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {

TEST_CASE("a service manager is told by a datagram") {
  const test::Scratch scratch;
  const std::string path = scratch / "notify";
  const UniqueFd receiver(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::bind(receiver.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
          0);
  std::array<char, 64> heard{};
  TellServiceManager("READY=1");  // nobody is named
  CHECK(::recv(receiver.get(), heard.data(), heard.size(), 0) < 0);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  TellServiceManager("READY=1");
  ::setenv("NOTIFY_SOCKET", (scratch / "nobody").c_str(), 1);
  TellServiceManager("STOPPING=1");  // nobody listens there: only logged
  ::unsetenv("NOTIFY_SOCKET");
  REQUIRE(::recv(receiver.get(), heard.data(), heard.size(), 0) == 7);
  CHECK(std::string(heard.data(), 7) == "READY=1");
  CHECK(::recv(receiver.get(), heard.data(), heard.size(), 0) < 0);
}

}  // namespace memoirfs::daemon
