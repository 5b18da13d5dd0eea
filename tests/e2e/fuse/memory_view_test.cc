// A view in memory on a real mount: what the kernel makes of our answers.

#include "tests/support/memory_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "fs/fuse/session.h"

namespace memoirfs::testing {
namespace {

namespace fs = std::filesystem;

constexpr vfs::NodeId kRoot{1};
constexpr int kSkipped = 77;

// Ends the program as skipped, with the reason, before the first test where nothing can be mounted.
const bool can_mount = [] {
  if (::access("/dev/fuse", F_OK) == 0) return true;
  std::puts("skipped: there is no /dev/fuse on this machine");
  std::exit(kSkipped);
}();

class Mounted {
 public:
  explicit Mounted(fuse::SessionOptions options = {}) {
    char name[] = "/tmp/memoirfs-e2e-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    options.mountpoint = path = name;
    if (options.source.empty()) options.source = "memory, \\view";
    auto mounted = fuse::Session::Mount(
        options, [this](vfs::KernelNotifier* of_session) -> Result<std::unique_ptr<vfs::View>> {
          notifier = of_session;
          auto made = std::make_unique<MemoryView>();
          view = made.get();
          return std::unique_ptr<vfs::View>(std::move(made));
        });
    if (!mounted.ok()) ::rmdir(name);
    INFO(mounted.status().ToString());
    REQUIRE(mounted.ok());
    session = std::move(*mounted);
    session->OnGone([this] { gone_.set_value(); });
  }
  ~Mounted() {
    session.reset();
    ::rmdir(path.c_str());
  }

  std::string At(const std::string& name) const { return path + "/" + name; }
  bool WaitUntilGone() {
    return gone_.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }
  uint64_t Count(const std::string& op) const {
    const auto metrics = nlohmann::json::parse(session->MetricsJson());
    return metrics.contains(op) ? metrics.at(op).at("count").get<uint64_t>() : 0;
  }

  std::string path;
  vfs::KernelNotifier* notifier = nullptr;
  MemoryView* view = nullptr;
  std::unique_ptr<fuse::Session> session;

 private:
  std::promise<void> gone_;
};

class Fd {
 public:
  explicit Fd(const std::string& path, int flags, mode_t mode = 0644)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    INFO(path);
    REQUIRE(fd_ >= 0);
  }
  ~Fd() { ::close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  operator int() const { return fd_; }  // NOLINT: a descriptor

 private:
  int fd_;
};

void Save(const std::string& path, const std::string& content) {
  const Fd fd(path, O_WRONLY | O_CREAT | O_TRUNC);
  REQUIRE(::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
}

std::string Load(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::set<std::string> List(const std::string& path) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.insert(entry.path().filename());
  return names;
}

struct stat StatOf(const std::string& path) {
  struct stat facts {};
  INFO(path);
  REQUIRE(::lstat(path.c_str(), &facts) == 0);
  return facts;
}

TEST_CASE("the mount shows its source and options, and goes away") {
  Mounted mounted;
  std::ifstream mounts("/proc/mounts");
  std::string line, found;
  while (std::getline(mounts, line)) {
    if (line.find(mounted.path) != std::string::npos) found = line;
  }
  CHECK_THAT(found, Catch::StartsWith("memory,\\040\\134view ") &&
                        Catch::Contains(" fuse.memoirfs ") && Catch::Contains("nosuid") &&
                        Catch::Contains("nodev") && Catch::Contains("default_permissions"));
  {
    const Fd open(mounted.At("f"), O_RDWR | O_CREAT);
    CHECK(mounted.session->Unmount(false).code() == Code::kBusy);
  }
  CHECK(mounted.session->Unmount(false).ok());
  CHECK(mounted.WaitUntilGone());
  CHECK(mounted.session->Unmount(false).ok());
}

TEST_CASE("an unmount by anybody else ends the session") {
  Mounted mounted;
  const std::string command = "fusermount3 -u " + mounted.path;
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(mounted.WaitUntilGone());
}

TEST_CASE("destroying the session ends a lazily detached mount with open files") {
  Mounted mounted;
  const Fd open(mounted.At("f"), O_RDWR | O_CREAT);
  CHECK(mounted.session->Unmount(true).ok());
  char byte = 'x';
  CHECK(::write(open, &byte, 1) == 1);
  mounted.session.reset();
  CHECK(mounted.WaitUntilGone());
  CHECK(::write(open, &byte, 1) == -1);
}

TEST_CASE("another mount over ours is not taken away") {
  if (::geteuid() != 0) return;
  Mounted mounted;
  REQUIRE(::mount("tmpfs", mounted.path.c_str(), "tmpfs", 0, nullptr) == 0);
  CHECK(mounted.session->Unmount(true).code() == Code::kBusy);
  REQUIRE(::umount(mounted.path.c_str()) == 0);
  CHECK(mounted.session->Unmount(false).ok());
}

TEST_CASE("files are written, read, appended to, mapped and cut") {
  Mounted mounted;
  const std::string path = mounted.At("f");
  Save(path, "hello");
  CHECK(Load(path) == "hello");
  CHECK(StatOf(path).st_size == 5);
  CHECK(StatOf(path).st_blksize == 128 * 1024);
  {
    const Fd log(path, O_WRONLY | O_APPEND);
    const Fd other(path, O_WRONLY | O_APPEND);
    CHECK(::write(log, " one", 4) == 4);
    CHECK(::write(other, " two", 4) == 4);
    CHECK(::write(log, " three", 6) == 6);
  }
  CHECK(Load(path) == "hello one two three");
  {
    const Fd fd(path, O_RDWR);
    void* map = ::mmap(nullptr, 19, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(map != MAP_FAILED);
    std::memcpy(map, "HELLO", 5);
    CHECK(::msync(map, 19, MS_SYNC) == 0);
    CHECK(::munmap(map, 19) == 0);
    CHECK(::ftruncate(fd, 9) == 0);
    CHECK(::lseek(fd, 0, SEEK_HOLE) == 9);
    CHECK(::fallocate(fd, 0, 0, 12) == 0);
  }
  CHECK(Load(path) == std::string("HELLO one\0\0\0", 12));
  const std::string big(3 << 20, 'b');
  Save(path, big);
  CHECK(Load(path) == big);
}

TEST_CASE("locks of two openers exclude each other") {
  Mounted mounted;
  const Fd one(mounted.At("f"), O_RDWR | O_CREAT), two(mounted.At("f"), O_RDWR);
  CHECK(::flock(one, LOCK_EX | LOCK_NB) == 0);
  CHECK(::flock(two, LOCK_EX | LOCK_NB) == -1);
  CHECK(errno == EWOULDBLOCK);
  CHECK(::flock(one, LOCK_UN) == 0);
  CHECK(::flock(two, LOCK_EX | LOCK_NB) == 0);
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_len = 10;
  CHECK(::fcntl(one, F_OFD_SETLK, &range) == 0);
  CHECK(::fcntl(two, F_OFD_SETLK, &range) == -1);
}

TEST_CASE("rename replaces, refuses to, and exchanges") {
  Mounted mounted;
  const std::string a = mounted.At("a"), b = mounted.At("b");
  Save(a, "a");
  Save(b, "b");
  const Fd old(b, O_RDONLY);
  CHECK(::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_NOREPLACE) == -1);
  CHECK(errno == EEXIST);
  CHECK(::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0);
  CHECK(Load(a) == "b");
  CHECK(Load(b) == "a");
  CHECK(::rename(b.c_str(), a.c_str()) == 0);
  CHECK(Load(a) == "a");
  CHECK(List(mounted.path) == std::set<std::string>{"a"});
  char byte = 0;
  CHECK(::pread(old, &byte, 1, 0) == 1);  // replaced, and still open
  CHECK(byte == 'b');
  struct stat facts {};
  CHECK(::fstat(old, &facts) == 0);
  CHECK(facts.st_nlink == 0);
}

TEST_CASE("ten thousand names are listed once each, and again without a request") {
  Mounted mounted;
  fs::create_directory(mounted.At("d"));
  std::set<std::string> expected;
  const vfs::NodeId directory(StatOf(mounted.At("d")).st_ino);
  for (int i = 0; i < 10'000; ++i) {
    const std::string name = "file-" + std::to_string(i);
    REQUIRE(mounted.view->MakeNode(directory, name, S_IFREG | 0644, 0, {}).ok());
    expected.insert(name);
  }
  CHECK(List(mounted.At("d")) == expected);
  List(mounted.At("d"));  // fills what the first pass left out of the cache
  const auto requests = [&] { return mounted.Count("readdir") + mounted.Count("readdirplus"); };
  const uint64_t before = requests();
  CHECK(List(mounted.At("d")) == expected);
  CHECK(requests() == before);
  CHECK(mounted.Count("opendir") == 1);
}

TEST_CASE("a kept listing follows changes through the mount and announced ones") {
  Mounted mounted;
  const std::string path = mounted.At("d");
  fs::create_directory(path);
  const vfs::NodeId directory(StatOf(path).st_ino);
  const auto relist = [&] {
    List(path);
    return List(path);
  };
  CHECK(relist().empty());
  Save(path + "/one", "1");
  CHECK(relist() == std::set<std::string>{"one"});
  fs::rename(path + "/one", path + "/two");
  CHECK(relist() == std::set<std::string>{"two"});
  fs::remove(path + "/two");
  CHECK(relist().empty());

  CHECK_FALSE(fs::exists(path + "/three"));
  REQUIRE(mounted.view->MakeNode(directory, "three", S_IFREG | 0644, 0, {}).ok());
  mounted.notifier->EntryChanged(directory, "three");
  CHECK(fs::exists(path + "/three"));
  CHECK(relist() == std::set<std::string>{"three"});

  REQUIRE(mounted.view->Unlink(directory, "three", {}).ok());
  mounted.notifier->EntryChanged(directory, "three");
  CHECK_FALSE(fs::exists(path + "/three"));
  CHECK(relist().empty());
}

TEST_CASE("a name that is missing is asked for once") {
  Mounted mounted;
  fs::create_directory(mounted.At("d"));
  CHECK_FALSE(fs::exists(mounted.At("d/nothing")));
  const uint64_t before = mounted.Count("lookup");
  CHECK_FALSE(fs::exists(mounted.At("d/nothing")));
  CHECK(mounted.Count("lookup") == before);
  Save(mounted.At("d/nothing"), "something");
  CHECK(Load(mounted.At("d/nothing")) == "something");
}

TEST_CASE("warm content and attributes need no request; announced content is read anew") {
  Mounted mounted;
  const std::string path = mounted.At("f");
  Save(path, "old");
  CHECK(Load(path) == "old");
  StatOf(path);
  const uint64_t reads = mounted.Count("read"), stats = mounted.Count("getattr");
  CHECK(Load(path) == "old");
  StatOf(path);
  CHECK(mounted.Count("read") == reads);
  CHECK(mounted.Count("getattr") == stats);

  const vfs::NodeId node(StatOf(path).st_ino);
  const Fd open(path, O_RDONLY);
  const auto behind = mounted.view->Open(node, O_RDWR | O_TRUNC, {});
  REQUIRE(behind.ok());
  REQUIRE(mounted.view->Write(behind->handle, 0, "newer", false, {}).ok());
  mounted.notifier->ContentChanged(node);
  CHECK(StatOf(path).st_size == 5);
  char text[6] = {};
  CHECK(::pread(open, text, 5, 0) == 5);
  CHECK(std::string(text) == "newer");
}

TEST_CASE("an uncached directory is listed anew when its time of change says so") {
  Mounted mounted;
  const std::string path = mounted.At("virtual");
  fs::create_directory(path);
  const vfs::NodeId directory(StatOf(path).st_ino);
  mounted.view->SetCacheable(directory, false);
  mounted.notifier->EntryChanged(kRoot, "virtual");
  List(path);
  CHECK(List(path).empty());
  REQUIRE(mounted.view->MakeNode(directory, "new", S_IFREG | 0644, 0, {}).ok());
  CHECK(List(path) == std::set<std::string>{"new"});
}

TEST_CASE("attributes, extended attributes and links") {
  Mounted mounted;
  const std::string path = mounted.At("f");
  Save(path, "x");
  CHECK(::setxattr(path.c_str(), "user.note", "v", 1, 0) == 0);
  char value[8];
  CHECK(::getxattr(path.c_str(), "user.note", value, sizeof(value)) == 1);
  CHECK(::listxattr(path.c_str(), value, 0) == 10);
  CHECK(::getxattr(path.c_str(), "user.none", value, sizeof(value)) == -1);
  CHECK(errno == ENODATA);
  CHECK(::removexattr(path.c_str(), "user.note") == 0);
  CHECK(::getxattr(path.c_str(), "system.posix_acl_access", value, sizeof(value)) == -1);
  CHECK(errno == EOPNOTSUPP);

  CHECK(::link(path.c_str(), mounted.At("g").c_str()) == 0);
  CHECK(StatOf(path).st_nlink == 2);
  CHECK(StatOf(mounted.At("g")).st_ino == StatOf(path).st_ino);
  CHECK(::symlink("f", mounted.At("s").c_str()) == 0);
  CHECK(Load(mounted.At("s")) == "x");
  CHECK(::chmod(path.c_str(), 0600) == 0);
  const timespec times[2] = {{.tv_sec = 5, .tv_nsec = 6}, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  const timespec before = StatOf(path).st_mtim;
  CHECK(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  CHECK(StatOf(path).st_atim.tv_nsec == 6);
  CHECK(StatOf(path).st_mtim.tv_nsec == before.tv_nsec);
  CHECK((StatOf(path).st_mode & 07777) == 0600);

  struct statvfs space {};
  CHECK(::statvfs(mounted.path.c_str(), &space) == 0);
  CHECK(space.f_namemax == 255);
  CHECK(space.f_bsize == 4096);
  CHECK(space.f_bavail > 0);
}

TEST_CASE("a mount that is read-only refuses changes") {
  fuse::SessionOptions options;
  options.read_only = true;
  Mounted mounted(options);
  CHECK(::mkdir(mounted.At("d").c_str(), 0755) == -1);
  CHECK(errno == EROFS);
}

TEST_CASE("writing to a file drops its suid bit") {
  if (::geteuid() != 0) return;
  fuse::SessionOptions options;
  options.allow_other = true;
  Mounted mounted(options);
  const std::string path = mounted.At("f");
  Save(path, "x");
  REQUIRE(::chmod(path.c_str(), 04777) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setgid(65534) == 0 && ::setuid(65534) == 0;
    const int fd = ::open(path.c_str(), O_WRONLY);
    ::_exit(other && fd >= 0 && ::write(fd, "y", 1) == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK((StatOf(path).st_mode & 07777) == 0777);
}

}  // namespace
}  // namespace memoirfs::testing
