#include "fs/fuse/mount.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace memoirfs::fuse {
namespace {

TEST_CASE("commas and backslashes in the source do not end its option") {
  SessionOptions options;
  options.source = "a,b\\c d";
  CHECK(MountOptionsOf(options) ==
        "default_permissions,nosuid,nodev,subtype=memoirfs,fsname=a\\,b\\\\c d");
  options.allow_other = options.read_only = true;
  CHECK(MountOptionsOf(options).ends_with(",allow_other,ro"));
}

TEST_CASE("a mount point that cannot be one is refused with what to do") {
  char folder[] = "/tmp/memoirfs-mount-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  SessionOptions options;
  options.mountpoint = std::string(folder) + "/missing";
  const Status missing = CheckMountable(options);
  CHECK(missing.code() == Code::kNotFound);
  CHECK_THAT(missing.message(), Catch::Contains("make the directory first"));

  options.mountpoint = std::string(folder) + "/file";
  std::ofstream(options.mountpoint) << "x";
  const Status file = CheckMountable(options);
  CHECK(file.code() == Code::kNotDirectory);
  CHECK_THAT(file.message(), Catch::Contains(options.mountpoint));
  std::filesystem::remove_all(folder);
}

TEST_CASE("mountinfo tells what is mounted where") {
  CHECK(DeviceMountedAt("/"));
  CHECK(IsMountedAt("/", *DeviceMountedAt("/")));
  CHECK_FALSE(IsMountedAt("/", "999999:1"));
  CHECK_FALSE(DeviceMountedAt("/no/such/path"));
}

TEST_CASE("taking away what is not mounted is a failure and not a hang") {
  char folder[] = "/tmp/memoirfs-mount-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  CHECK_FALSE(TakeMountAway(folder, true).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace memoirfs::fuse
