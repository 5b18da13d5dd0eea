#include "tests/e2e/stress/scenarios.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "store/base/unique_fd.h"
#include "tests/e2e/stress/files.h"

namespace memoirfs::stress {
namespace {

std::set<std::string> Names(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!names.insert(entry.path().filename()).second) {
      throw Violation(entry.path().string() + " is listed twice");
    }
  }
  return names;
}

// Names are replaced by rename, removed, and read: whoever reads sees one version as a whole.
uint64_t Versions(const Crew& crew) {
  constexpr std::array<size_t, 4> kSizes = {10, 4000, 70'000, 400'000};
  const uint64_t done = RunCrew(crew, [&](Worker& worker) {
    std::string content;
    const std::string fresh = worker.directory + "/fresh-" + std::to_string(worker.number);
    for (unsigned i = 0; i < worker.rounds; ++i) {
      const std::string path = worker.directory + "/v" + std::to_string(worker.random.Below(6));
      const uint64_t action = worker.random.Below(10);
      if (action < 4) {
        const size_t size = worker.random.Below(worker.random.Pick(kSizes));
        WriteFile(fresh, MakeVersion(worker.number * 1'000'000ULL + i, size));
        Allowed(::rename(fresh.c_str(), path.c_str()) == 0, "rename to " + path);
      } else if (action < 9) {
        if (ReadFile(path, &content)) CheckVersion(path, content);
      } else {
        Allowed(::unlink(path.c_str()) == 0, "unlink " + path, {ENOENT});
      }
      worker.Advance();
    }
  });
  for (const std::string& directory : crew.directories) {
    std::string content;
    for (const std::string& name : Names(directory)) {
      ReadFile(directory + "/" + name, &content);
      CheckVersion(directory + "/" + name, content);
    }
  }
  return done;
}

// Records appended by all to one file: none is lost, torn or out of its writer's order.
uint64_t Appends(const Crew& crew) {
  const uint64_t done = RunCrew(crew, [&](Worker& worker) {
    const std::string path = worker.directory + "/log";
    for (unsigned i = 0; i < worker.rounds; ++i) {
      const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
      Allowed(fd.valid(), "open " + path);
      char record[32];
      const int size = std::snprintf(record, sizeof record, "%08u %08u\n", worker.number, i);
      Allowed(::write(fd.get(), record, static_cast<size_t>(size)) == size, "append");
      worker.Advance();
    }
  });
  uint64_t records = 0;
  for (const std::string& directory : crew.directories) {
    std::string content;
    ReadFile(directory + "/log", &content);
    std::map<unsigned, unsigned> next;
    for (size_t at = 0; at < content.size(); at += 18, ++records) {
      unsigned number = 0;
      unsigned sequence = 0;
      const std::string record = content.substr(at, 18);
      if (std::sscanf(record.c_str(), "%8u %8u", &number, &sequence) != 2 || record.size() != 18 ||
          record.back() != '\n' || next[number]++ != sequence) {
        throw Violation("record " + std::to_string(records) + " is " + record);
      }
    }
  }
  if (records != uint64_t{crew.workers()} * crew.rounds) {
    throw Violation(std::to_string(records) + " records are there");
  }
  return done;
}

// mkdir as a lock around a counter in a file: no turn is lost.
uint64_t Locks(const Crew& crew) {
  const uint64_t done = RunCrew(crew, [&](Worker& worker) {
    const std::string lock = worker.directory + "/lock";
    const std::string counter = worker.directory + "/counter";
    for (unsigned i = 0; i < worker.rounds; ++i) {
      while (!Allowed(::mkdir(lock.c_str(), 0755) == 0, "mkdir lock", {EEXIST})) ::sched_yield();
      std::string value = "0";
      ReadFile(counter, &value);
      WriteFile(counter, std::to_string(std::stoull(value) + 1));
      Allowed(::rmdir(lock.c_str()) == 0, "rmdir lock");
      worker.Advance();
    }
  });
  uint64_t sum = 0;
  for (const std::string& directory : crew.directories) {
    std::string value;
    ReadFile(directory + "/counter", &value);
    sum += std::stoull(value);
  }
  if (sum != uint64_t{crew.workers()} * crew.rounds) {
    throw Violation("the counters say " + std::to_string(sum));
  }
  return done;
}

constexpr unsigned kTokens = 12;
constexpr unsigned kRooms = 4;

std::string Room(const std::string& directory, uint64_t room) {
  return directory + "/room-" + std::to_string(room);
}

void CheckTokens(const std::string& directory) {
  std::multiset<std::string> found;
  for (unsigned room = 0; room < kRooms; ++room) {
    for (const std::string& name : Names(Room(directory, room))) {
      std::string content;
      ReadFile(Room(directory, room) + "/" + name, &content);
      if (content != name) throw Violation(name + " contains " + content);
      found.insert(name);
    }
  }
  for (unsigned i = 0; i < kTokens; ++i) {
    if (found.count("token-" + std::to_string(i)) != 1)
      throw Violation("a token is not there once");
  }
}

// Files move between directories, by everybody at once: each is always in exactly one.
uint64_t Tokens(const Crew& crew) {
  for (const std::string& directory : crew.directories) {
    for (unsigned room = 0; room < kRooms; ++room) {
      Allowed(::mkdir(Room(directory, room).c_str(), 0755) == 0, "mkdir");
    }
    for (unsigned i = 0; i < kTokens; ++i) {
      const std::string name = "token-" + std::to_string(i);
      WriteFile(Room(directory, i % kRooms) + "/" + name, name);
    }
  }
  const uint64_t done = RunCrew(crew, [](Worker& worker) {
    for (unsigned i = 0; i < worker.rounds; ++i) {
      const std::string name = "/token-" + std::to_string(worker.random.Below(kTokens));
      const std::string from = Room(worker.directory, worker.random.Below(kRooms)) + name;
      const std::string to = Room(worker.directory, worker.random.Below(kRooms)) + name;
      const bool exclusive = worker.random.Percent(50) && from != to;
      const unsigned flags = exclusive ? RENAME_NOREPLACE : 0;
      const int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags);
      Allowed(result == 0, "rename", {ENOENT});
      worker.Advance();
    }
  });
  for (const std::string& directory : crew.directories) CheckTokens(directory);
  return done;
}

int RandomNameCall(Worker& worker, const std::string& path, const std::string& other) {
  switch (worker.random.Below(9)) {
    case 0:
    case 1:
      return ::mkdir(path.c_str(), 0755);
    case 2:
      return ::rmdir(path.c_str());
    case 3:
      return ::rename(path.c_str(), other.c_str());
    case 4:
      return ::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
    case 5:
      return ::link(path.c_str(), other.c_str());
    case 6:
      return ::unlink(path.c_str());
    case 7:
      return ::symlink("a", path.c_str());
    default: {
      const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
      if (!fd.valid()) return -1;
      return ::write(fd.get(), "text", 4) == 4 ? 0 : -1;
    }
  }
}

// Everything is done to few names at once: only errors that a race explains, and a sound tree.
uint64_t Names(const Crew& crew) {
  const uint64_t done = RunCrew(crew, [](Worker& worker) {
    static constexpr std::array kNames = {"a", "b", "c", "a/a", "a/b", "b/a", "a/b/c", "c/a"};
    for (unsigned i = 0; i < worker.rounds; ++i) {
      const std::string path = worker.directory + "/" + worker.random.Pick(kNames);
      const std::string other = worker.directory + "/" + worker.random.Pick(kNames);
      Allowed(RandomNameCall(worker, path, other) == 0, path + " and " + other,
              {ENOENT, EEXIST, ENOTEMPTY, ENOTDIR, EISDIR, EINVAL, ELOOP, EPERM, EBUSY});
      worker.Advance();
    }
  });
  for (const std::string& directory : crew.directories) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      static_cast<void>(entry.symlink_status());
    }
  }
  return done;
}

// Each worker's own names in a directory of all: exactly those that it kept are there.
uint64_t Counts(const Crew& crew) {
  const uint64_t done = RunCrew(crew, [](Worker& worker) {
    for (unsigned i = 0; i < worker.rounds; ++i) {
      const std::string name = std::to_string(worker.number) + "-" + std::to_string(i);
      const std::string path = worker.directory + "/" + name;
      WriteFile(path, name);
      if (i % 2 == 1) Allowed(::unlink(path.c_str()) == 0, "unlink " + path);
      worker.Advance();
    }
  });
  for (size_t d = 0; d < crew.directories.size(); ++d) {
    std::set<std::string> expected;
    for (size_t number = d; number < crew.workers(); number += crew.directories.size()) {
      for (unsigned i = 0; i < crew.rounds; i += 2) {
        expected.insert(std::to_string(number) + "-" + std::to_string(i));
      }
    }
    if (Names(crew.directories[d]) != expected) {
      throw Violation("names are missing or left over in " + crew.directories[d]);
    }
  }
  return done;
}

// One process keeps thousands of files open, and all of them work.
uint64_t OpenFiles(const Crew& crew) {
  constexpr unsigned kFiles = 10'000;
  const rlimit room = {kFiles + 100, kFiles + 100};
  Allowed(::setrlimit(RLIMIT_NOFILE, &room) == 0, "setrlimit");
  const std::string& directory = crew.directories.front();
  std::vector<UniqueFd> files;
  for (unsigned i = 0; i < kFiles; ++i) {
    const std::string path = directory + "/" + std::to_string(i);
    files.emplace_back(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    Allowed(files.back().valid(), "open " + path);
  }
  for (unsigned i = 0; i < kFiles; ++i) {
    const std::string text = std::to_string(i);
    const bool written =
        ::pwrite(files[i].get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
    Allowed(written, "write");
  }
  files.clear();
  std::string content;
  for (unsigned i = 0; i < kFiles; ++i) {
    ReadFile(directory + "/" + std::to_string(i), &content);
    if (content != std::to_string(i)) throw Violation("file " + std::to_string(i) + ": " + content);
  }
  return kFiles;
}

}  // namespace

const std::vector<Scenario>& Scenarios() {
  static const std::vector<Scenario> scenarios = {
      {"versions", "files replaced by rename are read as a whole", Versions},
      {"appends", "no appended record is lost or torn", Appends},
      {"locks", "mkdir excludes, and a counter loses no turn", Locks},
      {"tokens", "files that move are always in one directory", Tokens},
      {"names", "anything done to few names leaves a sound tree", Names},
      {"counts", "a directory of all lists what each kept", Counts},
      {"open-files", "10,000 open files in one process", OpenFiles}};
  return scenarios;
}

}  // namespace memoirfs::stress
