#include "fs/fuse/mount.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fs/fuse/mountinfo.h"

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

TEST_CASE("mountinfo is parsed with its escapes and optional fields") {
  const auto entries = ParseMountInfo(
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "90 22 0:50 / /mnt/a\\040b\\134c rw shared:7 master:3 - fuse.memoirfs /srv/st\\011ore rw\n"
      "garbage\n"
      "91 22 0:51 / /mnt/x rw - tmpfs tmpfs rw\n"
      "92 22 0:52 / /mnt/y rw -");
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].mountpoint == "/mnt/a b\\c");
  CHECK(entries[1].device == "0:50");
  CHECK(entries[1].type == "fuse.memoirfs");
  CHECK(entries[1].source == "/srv/st\tore");
  CHECK(entries[2].mountpoint == "/mnt/x");
}

TEST_CASE("the real mount table has a root") {
  const auto root = FindMount("/");
  REQUIRE(root.ok());
  REQUIRE(root->has_value());
  CHECK(IsMountedAt("/", (*root)->device).value());
  CHECK_FALSE(IsMountedAt("/", "999999:1").value());
  CHECK_FALSE(FindMount("/no/such/mount").value().has_value());
}

TEST_CASE("taking away what is not mounted is a failure and not a hang") {
  char folder[] = "/tmp/memoirfs-mount-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  CHECK_FALSE(TakeMountAway(folder, true).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace memoirfs::fuse
