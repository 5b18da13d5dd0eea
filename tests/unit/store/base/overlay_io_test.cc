#include "store/base/overlay_io.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <random>

#include "tests/support/temp_directory.h"

namespace memoirfs {
namespace {

// Every file below, with its content; directories with "/".
std::map<std::string, Bytes> TreeOf(FileIo& io, const std::string& path = ".") {
  std::map<std::string, Bytes> tree;
  const std::vector<std::string> names = io.List(path).value();
  for (const std::string& name : names) {
    const std::string full = path == "." ? name : path + "/" + name;
    if (io.Stat(full)->is_directory) {
      tree[full] = "/";
      tree.merge(TreeOf(io, full));
    } else {
      tree[full] = ReadWholeFile(io, full).value();
    }
  }
  return tree;
}

void Fill(FileIo& io) {
  for (const char* name : {"a", "b", "empty"}) REQUIRE(io.MakeDirectory(name).ok());
  for (const char* name : {"top", "a/1", "a/2", "b/1"}) {
    REQUIRE(WriteFileAtomically(io, name, Bytes(name) + Bytes(5000, '\0') + name).ok());
  }
}

std::unique_ptr<FileIo> NewIo(const test::TempDirectory& directory) {
  return OpenRealIo(directory.path()).value();
}

TEST_CASE("what can't be opened can be removed from the copy") {
  const test::TempDirectory directory;
  const std::string fifo = directory / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const auto base = NewIo(directory);
  REQUIRE(base->MakeDirectory("dir").ok());
  const auto copy = MakeOverlayIo(*base);
  CHECK(copy->Open("fifo", OpenMode::kRead).code() == Code::kCorrupt);
  CHECK(copy->Open("fifo", OpenMode::kCreate).code() == Code::kExists);
  CHECK(copy->Remove("fifo").ok());
  CHECK(copy->List(".").value() == std::vector<std::string>{"dir"});
  CHECK(copy->Remove("dir").code() == Code::kIsDirectory);
  CHECK(copy->RemoveDirectory("dir").ok());
  CHECK(base->List(".").value() == std::vector<std::string>{"dir", "fifo"});
}

// One random operation; the outcome as text.
std::string Step(FileIo& io, std::mt19937& random) {
  const char* const names[] = {"top", "a/1", "a/2", "b/1", "b/2", "new", "dir", "dir/x", "empty"};
  const std::string name = names[random() % std::size(names)];
  const std::string other = names[random() % std::size(names)];
  const auto text = [](const Status& status) { return std::string(CodeName(status.code())); };
  const uint64_t offset = random() % 9000;
  switch (random() % 7) {
    case 0: {
      const auto file = io.Open(name, OpenMode::kOpenOrCreate);
      return file.ok() ? text((*file)->WriteAt(offset, "changed")) : "no file";
    }
    case 1: {
      const auto file = io.Open(name, OpenMode::kReadWrite);
      return file.ok() ? text((*file)->Truncate(offset)) : "no file";
    }
    case 2:
      // A directory is not renamed here, nor onto.
      if (io.Stat(name).ok() && io.Stat(name)->is_directory) return "directory";
      if (io.Stat(other).ok() && io.Stat(other)->is_directory) return "directory";
      return text(io.Rename(name, other));
    case 3:
      if (io.Stat(name).ok() && io.Stat(name)->is_directory) return "directory";
      return text(io.Remove(name));
    case 4:
      return text(io.MakeDirectory(random() % 2 == 0 ? "dir" : "empty"));
    case 5:
      return text(io.RemoveDirectory(random() % 2 == 0 ? "dir" : "empty"));
    default: {
      const auto file = io.Open(name, OpenMode::kCreate);
      return file.ok() ? "made" : "not made";
    }
  }
}

}  // namespace

TEST_CASE("a copy behaves as the tree would, and the tree stays") {
  const unsigned seed = GENERATE(range(1U, 41U));
  INFO("seed " << seed);
  const test::TempDirectory directory;
  const test::TempDirectory twin_directory;
  const auto base = NewIo(directory);
  const auto twin = NewIo(twin_directory);
  Fill(*base);
  Fill(*twin);
  const auto before = TreeOf(*base);
  const auto copy = MakeOverlayIo(*base);
  std::mt19937 random(seed);
  for (int step = 0; step < 200; ++step) {
    std::mt19937 same = random;
    const std::string expected = Step(*twin, random);
    INFO("step " << step);
    REQUIRE(Step(*copy, same) == expected);
    REQUIRE(TreeOf(*copy) == TreeOf(*twin));
  }
  CHECK(TreeOf(*base) == before);
}

TEST_CASE("who has a file of a copy open sees what others write to it") {
  const test::TempDirectory directory;
  const auto base = NewIo(directory);
  Fill(*base);
  const auto copy = MakeOverlayIo(*base);
  const auto reader = copy->Open("top", OpenMode::kRead).value();
  const auto writer = copy->Open("top", OpenMode::kReadWrite).value();
  REQUIRE(writer->WriteAt(0, "new").ok());
  REQUIRE(copy->Rename("top", "a/1").ok());
  CHECK(reader->ReadAt(0, 3).value() == "new");
  CHECK(ReadWholeFile(*copy, "a/1").value() == reader->ReadAt(0, 100'000).value());
  CHECK(ReadWholeFile(*base, "top").value().substr(0, 3) == "top");
}

TEST_CASE("a copy holds no file open that nobody reads") {
  const test::TempDirectory directory;
  const auto base = NewIo(directory);
  Fill(*base);
  const auto copy = MakeOverlayIo(*base);
  const auto open_files = [] {
    namespace fs = std::filesystem;
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_files();
  REQUIRE(TreeOf(*copy).size() == 7);
  CHECK(open_files() == before);
}

}  // namespace memoirfs
