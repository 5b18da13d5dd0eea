#include "tests/e2e/parity/generator.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace memoirfs::parity {
namespace {

using e2e::Random;
using Words = std::vector<std::string>;
using Make = Words (*)(Random&);

constexpr uid_t kOtherUser = 65534;

std::string Number(uint64_t value) { return std::to_string(value); }

std::string Name(Random& random) {
  static constexpr std::array kNames = {"a", "b", "c", "d"};
  return random.Pick(kNames);
}

// Neither "..", nor absolute: a script stays in its directory.
std::string OddPath(Random& random) {
  static const std::array<std::string, 10> kOdd = {
      "''", ".", "a/", "b/.", "a//b", "./c", "<n*255>", "<n*256>", "a/<m*255>", "%ED%95%9C"};
  return random.Pick(kOdd);
}

std::string Path(Random& random) {
  if (random.Percent(3)) return OddPath(random);
  std::string path = Name(random);
  while (random.Percent(25)) path += "/" + Name(random);
  return path;
}

std::string Slot(Random& random) { return Number(random.Below(2)); }

std::string MappingName(Random& random) { return random.Percent(70) ? "m" : "n"; }

std::string Size(Random& random) {
  static constexpr std::array<uint64_t, 12> kEdges = {
      0, 1, 511, 4095, 4096, 4097, 65536, 131072, 262143, 262144, 262145, 600000};
  return Number(random.Percent(70) ? random.Below(9000) : random.Pick(kEdges));
}

std::string Offset(Random& random) {
  static constexpr std::array kRare = {"-1", "1099511627776", "9223372036854775807"};
  return random.Percent(2) ? random.Pick(kRare) : Size(random);
}

std::string Data(Random& random) { return Size(random) + ":" + Number(random.Below(1000)); }

std::string Mode(Random& random) {
  static constexpr std::array kModes = {"0644", "0755",  "0600",  "0777",  "0000",  "0444",
                                        "0711", "04755", "02775", "06777", "01777", "0664"};
  return random.Pick(kModes);
}

std::string Owner(Random& random) {
  static constexpr std::array kOwners = {"-1", "0", "65534", "1000"};
  return random.Pick(kOwners);
}

std::string Time(Random& random) {
  static constexpr std::array kTimes = {
      "now",          "omit",         "0.0",  "1.999999999",          "1.1000000000", "-1.0",
      "2147483648.5", "4294967296.0", "omit", "1234567890.123456789", "now"};
  return random.Pick(kTimes);
}

std::string OpenFlags(Random& random) {
  static constexpr std::array kAccess = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_RDWR", "O_RDWR"};
  static constexpr std::array kMore = {"O_EXCL",   "O_TRUNC",    "O_APPEND", "O_DIRECTORY",
                                       "O_TRUNC",  "O_NOFOLLOW", "O_PATH",   "O_SYNC",
                                       "O_APPEND", "O_DSYNC"};
  std::string flags = random.Pick(kAccess);
  if (random.Percent(65)) flags += "|O_CREAT";
  while (random.Percent(25)) flags += std::string("|") + random.Pick(kMore);
  if (random.Percent(1)) flags = "O_TMPFILE|O_RDWR";
  return flags;
}

std::string XattrName(Random& random) {
  static constexpr std::array kNames = {"user.a", "user.b",  "user.c",       "user.a",
                                        "user.",  "nothing", "user.<x*250>", "user.<x*251>"};
  return random.Percent(85) ? kNames[random.Below(3)] : random.Pick(kNames);
}

std::string XattrData(Random& random) {
  static constexpr std::array<uint64_t, 6> kSizes = {0, 1, 10, 200, 4096, 65536};
  return Number(random.Pick(kSizes)) + ":" + Number(random.Below(100));
}

std::string XattrFlags(Random& random) {
  static constexpr std::array kFlags = {"0", "0", "XATTR_CREATE", "XATTR_REPLACE"};
  return random.Pick(kFlags);
}

std::string LinkFlags(Random& random) { return random.Percent(20) ? "AT_SYMLINK_NOFOLLOW" : "0"; }

std::string RenameFlags(Random& random) {
  static constexpr std::array kFlags = {"0", "0", "0", "RENAME_NOREPLACE", "RENAME_EXCHANGE"};
  return random.Percent(2) ? "RENAME_NOREPLACE|RENAME_EXCHANGE" : random.Pick(kFlags);
}

std::string FallocateMode(Random& random) {
  static constexpr std::array kModes = {
      "0", "FALLOC_FL_KEEP_SIZE", "FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE",
      "FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE", "FALLOC_FL_PUNCH_HOLE"};
  return random.Pick(kModes);
}

std::string SymlinkTarget(Random& random) {
  static constexpr std::array kTargets = {"a", "b", "c/d", "missing", ".", "b/c", "e", "<t*4095>"};
  return random.Pick(kTargets);
}

std::string CopyOffset(Random& random) { return random.Percent(30) ? "-" : Size(random); }

std::string Protection(Random& random) {
  return random.Percent(70) ? "PROT_READ|PROT_WRITE" : "PROT_READ";
}

struct Choice {
  unsigned weight;
  Make make;
};

const std::vector<Choice>& NameChoices() {
  static const std::vector<Choice> choices = {
      {14,
       [](Random& r) {
         return Words{"open", Slot(r), Path(r), OpenFlags(r), Mode(r)};
       }},
      {3,
       [](Random& r) {
         return Words{"close", Slot(r)};
       }},
      {7,
       [](Random& r) {
         return Words{"mkdir", Path(r), Mode(r)};
       }},
      {3,
       [](Random& r) {
         return Words{"rmdir", Path(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"unlink", Path(r)};
       }},
      {8,
       [](Random& r) {
         return Words{"rename", Path(r), Path(r), RenameFlags(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"link", Path(r), Path(r), r.Percent(30) ? "AT_SYMLINK_FOLLOW" : "0"};
       }},
      {1,
       [](Random& r) {
         return Words{"linkfd", Slot(r), Path(r)};
       }},
      {3,
       [](Random& r) {
         return Words{"symlink", SymlinkTarget(r), Path(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"readlink", Path(r)};
       }},
      {2,
       [](Random& r) {
         static constexpr std::array kTypes = {"S_IFIFO|0640", "S_IFSOCK|0600", "S_IFREG|0604",
                                               "S_IFIFO|0666", "S_IFDIR|0755"};
         return Words{"mknod", Path(r), r.Pick(kTypes)};
       }},
      {2,
       [](Random& r) {
         return Words{"list", Path(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"listfd", Slot(r)};
       }},
      {2,
       [](Random& r) {
         return Words{"access", Path(r), r.Percent(50) ? "R_OK|W_OK" : "X_OK", "AT_EACCESS"};
       }},
      {1,
       [](Random& r) {
         return Words{"umask", r.Percent(50) ? "0022" : "0027"};
       }},
      {1, [](Random& r) {
         return Words{"statfs", Path(r)};
       }}};
  return choices;
}

const std::vector<Choice>& FileChoices() {
  static const std::vector<Choice> choices = {
      {8,
       [](Random& r) {
         return Words{"write", Slot(r), Data(r)};
       }},
      {6,
       [](Random& r) {
         return Words{"pwrite", Slot(r), Data(r), Offset(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"read", Slot(r), Size(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"pread", Slot(r), Size(r), Offset(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"ftruncate", Slot(r), Offset(r)};
       }},
      {3,
       [](Random& r) {
         return Words{"truncate", Path(r), Offset(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"fallocate", Slot(r), FallocateMode(r), Size(r), Size(r)};
       }},
      {2,
       [](Random& r) {
         static constexpr std::array kWhence = {"SEEK_SET", "SEEK_CUR", "SEEK_END"};
         return Words{"seek", Slot(r), Offset(r), r.Pick(kWhence)};
       }},
      {2,
       [](Random& r) {
         return Words{"sparse", Slot(r), Offset(r), r.Percent(50) ? "SEEK_DATA" : "SEEK_HOLE"};
       }},
      {4,
       [](Random& r) {
         return Words{"copy", Slot(r), CopyOffset(r), Slot(r), CopyOffset(r), Size(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"sendfile", Slot(r), Slot(r), Size(r)};
       }},
      {2,
       [](Random& r) {
         return Words{"fsync", Slot(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"fdatasync", Slot(r)};
       }},
      {1,
       [](Random& r) {
         static constexpr std::array kLocks = {"LOCK_SH", "LOCK_EX", "LOCK_UN"};
         return Words{"flock", Slot(r), r.Pick(kLocks)};
       }},
      {3,
       [](Random& r) {
         return Words{"map",
                      MappingName(r),
                      Slot(r),
                      r.Percent(70) ? "0" : "4096",
                      "70000",
                      Protection(r),
                      r.Percent(80) ? "MAP_SHARED" : "MAP_PRIVATE"};
       }},
      {2,
       [](Random& r) {
         return Words{"poke", MappingName(r), Number(r.Below(20000)), Data(r)};
       }},
      {2,
       [](Random& r) {
         return Words{"peek", MappingName(r), Number(r.Below(20000)), Size(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"msync", MappingName(r)};
       }},
      {1, [](Random& r) {
         return Words{"unmap", MappingName(r)};
       }}};
  return choices;
}

const std::vector<Choice>& AttributeChoices() {
  static const std::vector<Choice> choices = {
      {5,
       [](Random& r) {
         return Words{"chmod", Path(r), Mode(r)};
       }},
      {2,
       [](Random& r) {
         return Words{"fchmod", Slot(r), Mode(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"chown", Path(r), Owner(r), Owner(r), LinkFlags(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"fchown", Slot(r), Owner(r), Owner(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"utimens", Path(r), Time(r), Time(r), LinkFlags(r)};
       }},
      {2,
       [](Random& r) {
         return Words{"futimens", Slot(r), Time(r), Time(r)};
       }},
      {4,
       [](Random& r) {
         return Words{"setxattr", Path(r), XattrName(r), XattrData(r), XattrFlags(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"lsetxattr", Path(r), XattrName(r), XattrData(r), XattrFlags(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"fsetxattr", Slot(r), XattrName(r), XattrData(r), XattrFlags(r)};
       }},
      {2,
       [](Random& r) {
         static constexpr std::array kRooms = {"0", "5", "70000"};
         return Words{"getxattr", Path(r), XattrName(r), r.Pick(kRooms)};
       }},
      {1,
       [](Random& r) {
         return Words{"listxattr", Path(r)};
       }},
      {2,
       [](Random& r) {
         return Words{"removexattr", Path(r), XattrName(r)};
       }},
      {1,
       [](Random& r) {
         return Words{"stat", Path(r), LinkFlags(r)};
       }},
      {1, [](Random& r) {
         return Words{"fstat", Slot(r)};
       }}};
  return choices;
}

Words Choose(Random& random) {
  static const std::vector<Choice> all = [] {
    std::vector<Choice> joined;
    for (const auto* part : {&NameChoices(), &FileChoices(), &AttributeChoices()}) {
      joined.insert(joined.end(), part->begin(), part->end());
    }
    return joined;
  }();
  unsigned total = 0;
  for (const Choice& choice : all) total += choice.weight;
  auto place = static_cast<unsigned>(random.Below(total));
  for (const Choice& choice : all) {
    if (place < choice.weight) return choice.make(random);
    place -= choice.weight;
  }
  return {};
}

// What most sequences begin with, so that the calls find something to work on.
Script Beginning(Random& random) {
  static const std::vector<Script> beginnings = {
      {},
      ParseScript("open 0 a O_RDWR|O_CREAT 0644\nwrite 0 9000:1\nmkdir b 0777\n"),
      ParseScript("mkdir a 0777\nmkdir b 0777\nopen 1 a/a O_RDWR|O_CREAT 0666\nsymlink a c\n"),
      ParseScript("open 0 a O_RDWR|O_CREAT 0666\nopen 1 b O_RDWR|O_CREAT 0666\n"
                  "pwrite 1 300000:2 0\nlink a d\n"),
      ParseScript("as 65534 mkdir a 0777\nas 65534 open 0 b O_RDWR|O_CREAT 0644\n"
                  "as 65534 write 0 5000:3\nmkdir a/b 01777\n")};
  return random.Pick(beginnings);
}

// What another user gets for it differs: see WhatIsNotCompared.
bool NamesNoOwner(const Step& step) {
  return step.call.find("chown") != std::string::npos && step.arguments[1] == "-1" &&
         step.arguments[2] == "-1";
}

}  // namespace

Script Generate(uint64_t seed, const GeneratorOptions& options) {
  Random random(seed);
  Script script = Beginning(random);
  while (script.size() < options.steps) {
    Words words = Choose(random);
    Step step;
    step.call = words.front();
    step.arguments.assign(words.begin() + 1, words.end());
    if (options.other_users && random.Percent(20) && !NamesNoOwner(step)) step.user = kOtherUser;
    script.push_back(std::move(step));
  }
  return script;
}

}  // namespace memoirfs::parity
