#include "fs/daemon/paths.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "store/base/digest.h"
#include "store/base/file_io.h"
#include "store/base/file_name.h"
#include "store/volume/layout.h"

namespace memoirfs::daemon {
namespace {

namespace stdfs = std::filesystem;

constexpr char kOwnerFile[] = "store-path";

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never set here
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

Result<std::string> HomeDirectory() {
  if (auto home = Environment("HOME")) return *home;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer{};
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr && found->pw_dir != nullptr) return std::string(found->pw_dir);
  return Status(Code::kNotFound, "this user has no home directory. Set HOME, or name a store");
}

// An XDG base directory: a relative value is to be ignored, says their specification.
Result<std::string> XdgDirectory(const char* variable, const char* below_home) {
  if (auto value = Environment(variable); value && value->front() == '/') return *value;
  ASSIGN_OR_RETURN(const std::string home, HomeDirectory());
  return home + "/" + below_home;
}

bool HoldsStore(const std::string& path, const std::string& store_id) {
  const auto io = OpenRealIo(path);
  if (!io.ok()) return false;
  const Result<volume::StoreFormat> format = volume::ReadFormat(**io);
  return format.ok() && format->store_id == store_id;
}

// Of two names of one directory, as a bind mount makes them, neither is a copy of the other.
bool IsSameDirectory(const std::string& a, const std::string& b) {
  struct stat left {};
  struct stat right {};
  return ::stat(a.c_str(), &left) == 0 && ::stat(b.c_str(), &right) == 0 &&
         left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

// The place whose state `directory` is; nothing where it is nobody's yet.
Result<std::optional<std::string>> OwnerOf(const std::string& directory) {
  ASSIGN_OR_RETURN(const auto io, OpenRealIo(directory));
  Result<Bytes> owner = ReadWholeFile(*io, kOwnerFile);
  if (owner.code() == Code::kNotFound) return std::optional<std::string>();
  TRY(owner);
  return std::optional<std::string>(std::move(owner).value());
}

Status SetOwner(const std::string& directory, const std::string& store_path) {
  ASSIGN_OR_RETURN(const auto io, OpenRealIo(directory));
  return WriteFileAtomically(*io, kOwnerFile, store_path);
}

// Which of the folders of this store's copies is that of the place; by its name, or else by another
// name that the place has.
Result<std::optional<std::string>> FindState(const std::string& all, const std::string& store_id,
                                             const std::string& store_path) {
  ASSIGN_OR_RETURN(const auto io, OpenRealIo(all));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, io->List("."));
  std::optional<std::string> found;
  for (const std::string& name : names) {
    if (name != store_id && !name.starts_with(store_id + "-")) continue;
    std::string directory = all + "/" + name;
    ASSIGN_OR_RETURN(const std::optional<std::string> owner, OwnerOf(directory));
    if (!owner) continue;
    if (*owner == store_path) return std::optional<std::string>(std::move(directory));
    if (!found && IsSameDirectory(*owner, store_path)) found = std::move(directory);
  }
  return found;
}

// Whether the state in `directory` may become that of another place: it is nobody's, or the place
// that it names holds that store no longer.
Result<bool> IsFree(const std::string& directory, const std::string& store_id) {
  ASSIGN_OR_RETURN(const std::optional<std::string> owner, OwnerOf(directory));
  return !owner || !HoldsStore(*owner, store_id);
}

}  // namespace

Result<std::string> DefaultStorePath() {
  if (auto store = Environment("MEMOIRFS_STORE")) return *store;
  ASSIGN_OR_RETURN(const std::string data, XdgDirectory("XDG_DATA_HOME", ".local/share"));
  return data + "/memoirfs";
}

Result<std::string> AbsolutePath(const std::string& path) {
  if (path.empty()) return Status(Code::kInvalidArgument, "a path is empty");
  std::error_code error;
  stdfs::path absolute = stdfs::absolute(path, error).lexically_normal();
  if (error) return Status::FromErrno(error.value(), "path " + path);
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  if (!absolute.has_filename()) return std::string("/");
  const stdfs::path parent = stdfs::weakly_canonical(absolute.parent_path(), error);
  if (error) return Status::FromErrno(error.value(), "path " + path);
  return (parent / absolute.filename()).string();
}

Result<std::string> StateDirectory(const std::string& store_id, const std::string& store_path) {
  TRY(CheckAgentName(store_id).WithContext("the store's id"));
  ASSIGN_OR_RETURN(const std::string state, XdgDirectory("XDG_STATE_HOME", ".local/state"));
  const std::string all = state + "/memoirfs";
  TRY(MakeDirectories(all));
  ASSIGN_OR_RETURN(const std::optional<std::string> known, FindState(all, store_id, store_path));
  if (known) return *known;
  std::string directory = all + "/" + store_id;
  TRY(MakeDirectories(directory));
  ASSIGN_OR_RETURN(const bool free, IsFree(directory, store_id));
  if (!free) directory += "-" + Sha256::Of(store_path).ToHex().substr(0, 16);
  TRY(MakeDirectories(directory));
  TRY(SetOwner(directory, store_path));
  return directory;
}

Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return Status::FromErrno(errno, "make directory " + part);
    }
    if (slash == std::string::npos) return {};
  }
}

}  // namespace memoirfs::daemon
