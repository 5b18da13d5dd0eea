// Stores that an earlier build wrote are opened, verified and read by this one. They are unpacked
// by CMake and opened over a copy that is gone afterwards: a test cannot change them.

#include <catch2/catch.hpp>
#include <memory>

#include "store/base/clock.h"
#include "store/base/overlay_io.h"
#include "store/cas/chunk_tree.h"
#include "store/volume/verify.h"
#include "tests/golden/store/contents.h"

namespace memoirfs::golden {
namespace {

template <typename T>
T Must(Result<T> result) {
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  return std::move(result).value();
}

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : disk_(Must(OpenRealIo(std::string(MEMOIRFS_GOLDEN_STORES) + "/" + name))),
        copy_(MakeOverlayIo(*disk_)) {
    options_.background = false;
    options_.journal.file_size = 1U << 20;
    options_.journal.reserve = 128U << 10;
    Reopen();
    stream = Must(volume->FindAgent(kAgent)).stream;
  }
  void Reopen() {
    volume.reset();
    volume = Must(volume::Volume::Open(*copy_, Clock::Real(), options_));
  }

  InodeId IdOf(const std::string& path) const {
    return Must(volume->FindVersion(stream, path, std::nullopt)).id;
  }
  Bytes ContentsOf(const std::string& path, std::optional<Seq> seq = std::nullopt) const {
    const volume::Inode inode = Must(volume->FindVersion(stream, path, seq));
    return Must(cas::ReadContent(volume->objects(), inode.content, 0, inode.content.size));
  }
  // The record that saved a path first.
  Seq FirstPut(const std::string& path) const {
    Seq first;
    const Status read = volume->ForEachRecord(
        stream, Seq(1), [&](const chain::ParsedRecord& record, std::string_view) {
          const bool found = record.change.op == chain::Op::kPut && record.change.path == path;
          if (found && first == Seq()) first = record.seq;
          return Status();
        });
    REQUIRE(read.ok());
    return first;
  }
  void CheckVerifies() const {
    const volume::VerifyReport report = Must(volume::VerifyVolume(*volume, {}, {}));
    for (const volume::VerifyProblem& problem : report.problems) {
      UNSCOPED_INFO(problem.what << " " << problem.where << ": expected " << problem.expected
                                 << ", found " << problem.found);
    }
    CHECK(report.problems.empty());
    CHECK(report.streams == 2);
    CHECK(report.objects > 0);
    CHECK(report.packs > 0);
  }

 private:
  std::unique_ptr<FileIo> disk_;
  std::unique_ptr<FileIo> copy_;
  volume::VolumeOptions options_;

 public:
  std::unique_ptr<volume::Volume> volume;
  StreamId stream;
};

}  // namespace

TEST_CASE("a store of format 1 is opened, verified and read") {
  const std::string name = GENERATE("clean", "killed");
  INFO(name);
  Fixture store(name);
  store.CheckVerifies();
  for (const auto& [path, content] : Files()) {
    INFO(path);
    CHECK(store.ContentsOf(path) == content);
  }
  CHECK(store.ContentsOf("MEMORY.md", store.FirstPut("MEMORY.md")) == kFirstVersion);
  CHECK(Must(store.volume->ReadLink(store.stream, store.IdOf(kSymlink))) == kSymlinkTarget);
  CHECK(store.IdOf(kHardLink) == store.IdOf("notes/a.md"));
  CHECK(Must(store.volume->GetXattr(store.stream, store.IdOf("MEMORY.md"), kXattr)) == kXattrValue);
  CHECK(store.ContentsOf("empty.old") == "renamed over\n");
  CHECK(store.volume->FindVersion(store.stream, "gone", std::nullopt).code() == Code::kNotFound);
  CHECK(store.volume->FindAgent(kRemovedAgent).code() == Code::kNotFound);
}

TEST_CASE("a file that was created and not closed when a store of format 1 was killed is empty") {
  const Fixture store("killed");
  CHECK(store.ContentsOf(kUncommitted).empty());
}

TEST_CASE("a store of format 1 goes on: what is added is there after opening it again") {
  const std::string name = GENERATE("clean", "killed");
  INFO(name);
  Fixture store(name);
  const auto made = store.volume->MakeDirectory(store.stream, kRootInode, "added",
                                                {S_IFDIR | 0755, 1000, 1000, 0}, {});
  REQUIRE(made.ok());
  store.Reopen();
  CHECK(store.IdOf("added") == made->id);
  store.CheckVerifies();
}

}  // namespace memoirfs::golden
