// Where things are: default paths, state directories, mount points, the mount table.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "fs/daemon/mountpoint.h"
#include "fs/daemon/paths.h"
#include "store/volume/volume.h"
#include "tests/unit/fs/daemon/scratch.h"

namespace memoirfs::daemon {
namespace {

using test::Scratch;

// Sets a variable of the environment, and puts the old value back.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

constexpr char kId[] = "7c1a7d2e-0000-4000-8000-000000000001";

mode_t ModeOf(const std::string& path) {
  struct stat st {};
  REQUIRE(::stat(path.c_str(), &st) == 0);
  return st.st_mode & 07777;
}

}  // namespace

TEST_CASE("the default store is what the environment says, in order") {
  const Variable home("HOME", "/home/someone");
  const Variable data("XDG_DATA_HOME", "/data");
  {
    const Variable store("MEMOIRFS_STORE", "relative/store");
    CHECK(DefaultStorePath().value() == "relative/store");
  }
  const Variable none("MEMOIRFS_STORE", "");
  CHECK(DefaultStorePath().value() == "/data/memoirfs");
  const Variable relative("XDG_DATA_HOME", "not/absolute");
  CHECK(DefaultStorePath().value() == "/home/someone/.local/share/memoirfs");
}

TEST_CASE("a path is absolute, and its last part stays a link") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "real");
  std::filesystem::create_symlink(scratch / "real", scratch / "link");
  CHECK(AbsolutePath(scratch / "link/../real/").value() == scratch / "real");
  CHECK(AbsolutePath(scratch / "link").value() == scratch / "link");
  CHECK(AbsolutePath(scratch / "link/store").value() == scratch / "real/store");
  CHECK(AbsolutePath(scratch / "missing/deep/store").value() == scratch / "missing/deep/store");
  CHECK(AbsolutePath("/").value() == "/");
  CHECK(AbsolutePath("").code() == Code::kInvalidArgument);
}

TEST_CASE("a state directory is made for its owner alone") {
  const Scratch scratch;
  const Variable state("XDG_STATE_HOME", scratch / "state");
  const auto directory = StateDirectory(kId, scratch / "store");
  REQUIRE(directory.ok());
  CHECK(*directory == scratch / "state/memoirfs/" + kId);
  CHECK(ModeOf(*directory) == 0700);
  CHECK(StateDirectory("../escape", scratch / "store").code() == Code::kInvalidArgument);
  CHECK(StateDirectory("", scratch / "store").code() == Code::kInvalidArgument);
}

namespace {

std::string IdOfStore(const std::string& path) {
  std::ifstream format(path + "/FORMAT");
  for (std::string line; std::getline(format, line);) {
    if (line.rfind("id ", 0) == 0) return line.substr(3);
  }
  return "";
}

}  // namespace

TEST_CASE("state moves along with a store and is not shared with a copy of it") {
  const Scratch scratch;
  const Variable state("XDG_STATE_HOME", scratch / "state");
  REQUIRE(volume::InitStore(scratch / "store").ok());
  const std::string id = IdOfStore(scratch / "store");
  const std::string first = StateDirectory(id, scratch / "store").value();
  std::filesystem::copy(scratch / "store", scratch / "copy",
                        std::filesystem::copy_options::recursive);
  const std::string second = StateDirectory(id, scratch / "copy").value();
  CHECK(second != first);
  CHECK(StateDirectory(id, scratch / "copy").value() == second);
  CHECK(StateDirectory(id, scratch / "store").value() == first);

  std::filesystem::rename(scratch / "store", scratch / "moved");
  CHECK(StateDirectory(id, scratch / "moved").value() == first);
}

// What a bind mount does, without needing root: another path to the very same directory.
TEST_CASE("another name of a store's directory is the same store, of a copy the same copy") {
  const Scratch scratch;
  const Variable state("XDG_STATE_HOME", scratch / "state");
  REQUIRE(volume::InitStore(scratch / "store").ok());
  const std::string id = IdOfStore(scratch / "store");
  std::filesystem::copy(scratch / "store", scratch / "copy",
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directory_symlink(scratch.path(), scratch / "alias");
  const std::string first = StateDirectory(id, scratch / "store").value();
  const std::string second = StateDirectory(id, scratch / "copy").value();
  CHECK(second != first);
  CHECK(StateDirectory(id, scratch / "alias/store").value() == first);
  CHECK(StateDirectory(id, scratch / "alias/copy").value() == second);

  // A copy keeps its own state where the original goes.
  std::filesystem::remove_all(scratch / "store");
  CHECK(StateDirectory(id, scratch / "copy").value() == second);
}

TEST_CASE("a mount point must be an empty directory outside the store") {
  const Scratch scratch;
  const std::string store = scratch / "store";
  std::filesystem::create_directories(store + "/inside");
  std::filesystem::create_directory(scratch / "empty");
  std::filesystem::create_directory(scratch / "full");
  std::filesystem::create_directory(scratch / "store-beside");
  std::ofstream(scratch / "full/file") << "x";
  std::ofstream(scratch / "file") << "x";

  CHECK(PrepareMountpoint(scratch / "empty", store).ok());
  CHECK(PrepareMountpoint(scratch / "store-beside", store).ok());
  CHECK(PrepareMountpoint(scratch / "full", store).code() == Code::kNotEmpty);
  CHECK(PrepareMountpoint(scratch / "file", store).code() == Code::kNotDirectory);
  CHECK(PrepareMountpoint(scratch / "missing", store).code() == Code::kNotFound);
  CHECK(PrepareMountpoint(store, store).code() == Code::kInvalidArgument);
  CHECK(PrepareMountpoint(store + "/inside", store).code() == Code::kInvalidArgument);
  CHECK(PrepareMountpoint(scratch / "missing", store).ToString().find("make the directory") !=
        std::string::npos);
}

TEST_CASE("a mount point is resolved to what the kernel will call it") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "real");
  std::filesystem::create_symlink(scratch / "real", scratch / "link");
  CHECK(ResolveMountpoint(scratch / "link").value() == scratch / "real");
  CHECK(ResolveMountpoint(scratch / "link/").value() == scratch / "real");
  CHECK(ResolveMountpoint(scratch / "missing").value() == scratch / "missing");
}

}  // namespace memoirfs::daemon
