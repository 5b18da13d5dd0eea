#include "store/meta/leveldb_env.h"

#include <catch2/catch.hpp>

#include "tests/support/sim_io.h"

namespace memoirfs::meta {
namespace {

using testing::SimCall;
using testing::SimIo;

std::unique_ptr<leveldb::WritableFile> MakeFile(LevelDbEnv& env, const std::string& name) {
  leveldb::WritableFile* file = nullptr;
  REQUIRE(env.NewWritableFile(name, &file).ok());
  return std::unique_ptr<leveldb::WritableFile>(file);
}

void MakeIndexDirectory(SimIo& io) {
  REQUIRE(io.MakeDirectory("index").ok());
  REQUIRE(io.SyncDirectory(".").ok());
}

// What every power cut leaves of a file; nullopt when some cut takes it away or leaves something
// else of it.
std::optional<Bytes> SurvivingContent(const SimIo& io, const std::string& path) {
  std::optional<Bytes> content;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto after = io.AfterPowerCut(seed);
    const auto read = ReadWholeFile(*after, path);
    if (!read.ok() || (content && *content != *read)) return std::nullopt;
    content = *read;
  }
  return content;
}

}  // namespace

TEST_CASE("a log that is destroyed with unsynced bytes is synced first") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto log = MakeFile(env, "index/000003.log");
  REQUIRE(log->Append("row").ok());
  REQUIRE(log->Flush().ok());
  CHECK(SurvivingContent(io, "index/000003.log") == std::nullopt);
  log.reset();
  CHECK(SurvivingContent(io, "index/000003.log") == "row");
}

TEST_CASE("a log that was synced is not synced again when it is closed") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto log = MakeFile(env, "index/000003.log");
  REQUIRE(log->Append("row").ok());
  REQUIRE(log->Sync().ok());
  const uint64_t changes = io.calls(SimCall::kChange);
  REQUIRE(log->Close().ok());
  log.reset();
  CHECK(io.calls(SimCall::kChange) == changes);
}

TEST_CASE("another file is written out when it is destroyed, and not synced") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto table = MakeFile(env, "index/000004.ldb");
  REQUIRE(table->Append("row").ok());
  table.reset();
  CHECK(*ReadWholeFile(io, "index/000004.ldb") == "row");
  CHECK(io.calls(SimCall::kDataSync) == 0);
}

TEST_CASE("a sync makes the names of all new files durable, once") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto table = MakeFile(env, "index/000004.ldb");
  auto manifest = MakeFile(env, "index/MANIFEST-000002");
  const uint64_t before = io.calls(SimCall::kSyncDirectory);
  REQUIRE(manifest->Append("edit").ok());
  REQUIRE(manifest->Sync().ok());
  CHECK(SurvivingContent(io, "index/MANIFEST-000002") == "edit");
  CHECK(SurvivingContent(io, "index/000004.ldb") == "");
  REQUIRE(manifest->Append("more").ok());
  REQUIRE(manifest->Sync().ok());
  CHECK(io.calls(SimCall::kSyncDirectory) == before + 1);
}

TEST_CASE("a file's bytes are durable only after the names it may refer to") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto manifest = MakeFile(env, "index/MANIFEST-000002");
  REQUIRE(manifest->Append("edit").ok());
  io.FailAt(1, EIO, SimCall::kSyncDirectory);
  CHECK(!manifest->Sync().ok());
  CHECK(io.calls(SimCall::kDataSync) == 0);
}

TEST_CASE("a rename is durable when it returns") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto temporary = MakeFile(env, "index/000001.dbtmp");
  REQUIRE(temporary->Append("MANIFEST-000002\n").ok());
  REQUIRE(temporary->Sync().ok());
  temporary.reset();
  REQUIRE(env.RenameFile("index/000001.dbtmp", "index/CURRENT").ok());
  CHECK(SurvivingContent(io, "index/CURRENT") == "MANIFEST-000002\n");
}

TEST_CASE("a failure that a destructor meets stops every later write") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto old_log = MakeFile(env, "index/000003.log");
  auto new_log = MakeFile(env, "index/000005.log");
  REQUIRE(old_log->Append("row").ok());
  io.FailAt(1, ENOSPC, SimCall::kWrite);
  old_log.reset();
  CHECK(env.failure().code() == Code::kNoSpace);
  REQUIRE(new_log->Append("row").ok());
  CHECK(!new_log->Flush().ok());
  CHECK(!new_log->Sync().ok());
}

TEST_CASE("a file is read as it was written, in turn and at any place") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  const Bytes written(200'000, 'x');  // more than the write buffer
  auto table = MakeFile(env, "index/000004.ldb");
  REQUIRE(table->Append(written).ok());
  REQUIRE(table->Append("end").ok());
  REQUIRE(table->Close().ok());

  leveldb::SequentialFile* opened = nullptr;
  REQUIRE(env.NewSequentialFile("index/000004.ldb", &opened).ok());
  const std::unique_ptr<leveldb::SequentialFile> in_turn(opened);
  Bytes scratch(written.size(), '\0');
  leveldb::Slice got;
  REQUIRE(in_turn->Skip(199'999).ok());
  REQUIRE(in_turn->Read(100, &got, scratch.data()).ok());
  CHECK(got.ToString() == "xend");
  REQUIRE(in_turn->Read(100, &got, scratch.data()).ok());
  CHECK(got.empty());

  leveldb::RandomAccessFile* random = nullptr;
  REQUIRE(env.NewRandomAccessFile("index/000004.ldb", &random).ok());
  const std::unique_ptr<leveldb::RandomAccessFile> anywhere(random);
  REQUIRE(anywhere->Read(200'000, 3, &got, scratch.data()).ok());
  CHECK(got.ToString() == "end");
}

TEST_CASE("LevelDB is told that a file is missing in its own terms") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  leveldb::SequentialFile* file = nullptr;
  CHECK(env.NewSequentialFile("index/CURRENT", &file).IsNotFound());
  CHECK(file == nullptr);
  CHECK(!env.FileExists("index/CURRENT"));
}

TEST_CASE("a table that is missing is damage, and not taken for a missing key") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  leveldb::RandomAccessFile* file = nullptr;
  CHECK(env.NewRandomAccessFile("index/000005.ldb", &file).IsCorruption());
  CHECK(file == nullptr);
}

TEST_CASE("an environment that is retired changes nothing more") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv env(io, "index");
  auto log = MakeFile(env, "index/000003.log");
  env.Retire();
  const uint64_t changes = io.calls(SimCall::kChange);
  REQUIRE(log->Append("row").ok());
  CHECK(!log->Flush().ok());
  log.reset();
  leveldb::WritableFile* file = nullptr;
  CHECK(!env.NewWritableFile("index/000004.ldb", &file).ok());
  CHECK(!env.RemoveFile("index/000003.log").ok());
  CHECK(!env.RenameFile("index/000003.log", "index/000005.log").ok());
  CHECK(io.calls(SimCall::kChange) == changes);
}

TEST_CASE("files of an earlier instance stay while it is read, and no longer") {
  SimIo io;
  MakeIndexDirectory(io);
  LevelDbEnv earlier(io, "index");
  MakeFile(earlier, "index/000004.ldb");
  LevelDbEnv env(io, "index");
  auto reader = std::make_shared<int>(0);
  REQUIRE(env.KeepFilesFor(reader).ok());
  MakeFile(env, "index/000006.ldb");
  CHECK(env.RemoveFile("index/000004.ldb").ok());
  CHECK(env.RemoveFile("index/000006.ldb").ok());
  CHECK(env.FileExists("index/000004.ldb"));
  CHECK(!env.FileExists("index/000006.ldb"));
  reader.reset();
  CHECK(env.RemoveFile("index/000004.ldb").ok());
  CHECK(!env.FileExists("index/000004.ldb"));
}

}  // namespace memoirfs::meta
