#include "store/meta/leveldb_env.h"

#include <catch2/catch.hpp>

#include "tests/unit/store/meta/memory_io.h"

namespace memoirfs::meta {
namespace {

using Events = std::vector<std::string>;

std::unique_ptr<leveldb::WritableFile> MakeFile(LevelDbEnv& env, const std::string& name) {
  leveldb::WritableFile* file = nullptr;
  REQUIRE(env.NewWritableFile(name, &file).ok());
  return std::unique_ptr<leveldb::WritableFile>(file);
}

}  // namespace

TEST_CASE("a log that is destroyed with unsynced bytes is synced first") {
  test::MemoryIo io;
  LevelDbEnv env(io, "index");
  auto log = MakeFile(env, "index/000003.log");
  REQUIRE(log->Append("row").ok());
  REQUIRE(log->Flush().ok());
  log.reset();
  CHECK(io.events() == Events{"write index/000003.log", "syncdir index", "sync index/000003.log"});
}

TEST_CASE("a log that was synced is not synced again when it is closed") {
  test::MemoryIo io;
  LevelDbEnv env(io, "index");
  auto log = MakeFile(env, "index/000003.log");
  REQUIRE(log->Append("row").ok());
  REQUIRE(log->Sync().ok());
  io.ClearEvents();
  REQUIRE(log->Close().ok());
  log.reset();
  CHECK(io.events().empty());
}

TEST_CASE("another file is written out when it is destroyed, and not synced") {
  test::MemoryIo io;
  LevelDbEnv env(io, "index");
  auto table = MakeFile(env, "index/000004.ldb");
  REQUIRE(table->Append("row").ok());
  table.reset();
  CHECK(io.events() == Events{"write index/000004.ldb"});
}

TEST_CASE("a sync makes the names of new files durable, once") {
  test::MemoryIo io;
  LevelDbEnv env(io, "index");
  auto table = MakeFile(env, "index/000004.ldb");
  auto manifest = MakeFile(env, "index/MANIFEST-000002");
  REQUIRE(manifest->Append("edit").ok());
  REQUIRE(manifest->Sync().ok());
  CHECK(io.events() ==
        Events{"write index/MANIFEST-000002", "syncdir index", "sync index/MANIFEST-000002"});
  io.ClearEvents();
  REQUIRE(manifest->Append("edit").ok());
  REQUIRE(manifest->Sync().ok());
  CHECK(io.events() == Events{"write index/MANIFEST-000002", "sync index/MANIFEST-000002"});
}

TEST_CASE("a renamed file has its name durably before anything else happens") {
  test::MemoryIo io;
  LevelDbEnv env(io, "index");
  MakeFile(env, "index/000001.dbtmp").reset();
  io.ClearEvents();
  REQUIRE(env.RenameFile("index/000001.dbtmp", "index/CURRENT").ok());
  CHECK(io.events() == Events{"rename index/000001.dbtmp index/CURRENT", "syncdir index"});
}

TEST_CASE("a failure that a destructor meets stops every later write") {
  test::MemoryIo io;
  LevelDbEnv env(io, "index");
  auto old_log = MakeFile(env, "index/000003.log");
  auto new_log = MakeFile(env, "index/000005.log");
  REQUIRE(old_log->Append("row").ok());
  io.FailWrites(true);
  old_log.reset();
  io.FailWrites(false);
  CHECK(env.failure().code() == Code::kNoSpace);
  REQUIRE(new_log->Append("row").ok());
  CHECK(!new_log->Flush().ok());
  CHECK(!new_log->Sync().ok());
}

TEST_CASE("a file is read as it was written, in turn and at any place") {
  test::MemoryIo io;
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
  test::MemoryIo io;
  LevelDbEnv env(io, "index");
  leveldb::SequentialFile* file = nullptr;
  CHECK(env.NewSequentialFile("index/CURRENT", &file).IsNotFound());
  CHECK(file == nullptr);
  CHECK(!env.FileExists("index/CURRENT"));
}

}  // namespace memoirfs::meta
