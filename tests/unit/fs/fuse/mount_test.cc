#include "fs/fuse/mount.h"

#include <sys/stat.h>
#include <sys/wait.h>
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

// A program in the place of fusermount3, for an ordinary user; it says this and fails.
class FailingHelper {
 public:
  explicit FailingHelper(const std::string& says) {
    REQUIRE(::mkdtemp(folder_) != nullptr);
    const std::string program = std::string(folder_) + "/fusermount3";
    std::ofstream(program) << "#!/bin/sh\necho '" << says << "' >&2\nexit 1\n";
    REQUIRE(::chmod(folder_, 0755) == 0);
    REQUIRE(::chmod(program.c_str(), 0755) == 0);
  }
  ~FailingHelper() { std::filesystem::remove_all(folder_); }

  // "<code>: <message>" of what TakeMountAway answers.
  std::string Answer() const {
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) RunAsUser(ends[1]);
    ::close(ends[1]);
    std::string answer(4096, '\0');
    const ssize_t n = ::read(ends[0], answer.data(), answer.size());
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    answer.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return answer;
  }

 private:
  [[noreturn]] void RunAsUser(int out) const {
    constexpr uid_t kNobody = 65534;
    const bool ordinary = ::geteuid() != 0 || ::setresuid(kNobody, kNobody, kNobody) == 0;
    ::setenv("PATH", (std::string(folder_) + ":/usr/bin:/bin").c_str(), 1);
    const Status status = ordinary ? TakeMountAway("/", false) : Status();
    const std::string text = std::string(CodeName(status.code())) + ": " + status.ToString();
    ::_exit(::write(out, text.data(), text.size()) < 0 ? 1 : 0);
  }

  char folder_[32] = "/tmp/memoirfs-helper-XXXXXX";
};

TEST_CASE("what the helper says is passed on, and only a mount in use is called so") {
  CHECK(FailingHelper("fusermount3: entry for / not found in /etc/mtab").Answer() ==
        "not permitted: cannot unmount /: fusermount3: entry for / not found in /etc/mtab");
  const std::string busy =
      FailingHelper("fusermount3: failed to unmount /: Device or resource busy").Answer();
  CHECK_THAT(busy, Catch::StartsWith("busy: / is in use"));
}

}  // namespace
}  // namespace memoirfs::fuse
