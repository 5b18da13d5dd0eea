// Each byte of each file of a small index is changed in turn: the index must say that it is
// corrupt, when it is opened or when it is read, or answer what it answered before.

#include <catch2/catch.hpp>
#include <map>

#include "store/meta/index.h"
#include "tests/support/sim_io.h"

namespace memoirfs::meta {
namespace {

using journal::Lsn;
using Rows = std::map<Bytes, Bytes>;

// The rows that a scan shows and that look-ups find; or the failure.
Result<Rows> ReadAll(FileIo& io, const Rows& expected) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Index> index, Index::Open(io, "index"));
  Rows rows;
  TRY(index->Scan("", "", [&](ByteView key, ByteView value) {
    rows[Bytes(key)] = value;
    return true;
  }));
  for (const auto& [key, value] : expected) {
    ASSIGN_OR_RETURN(const std::optional<Bytes> got, index->Get(key));
    if (got != value) rows.erase(key);
  }
  return rows;
}

void AddRows(Index& index, const std::string& tag, Rows& rows) {
  for (int i = 0; i < 12; ++i) {
    const Bytes key = tag + std::to_string(i);
    rows[key] = "value of " + key;
    Batch batch;
    batch.Put(key, rows[key]);
    index.Apply(batch, Lsn{1, 1});
  }
  rows["M"] = tag;
  REQUIRE(index.FlushAndSync(Lsn{1, 1}, "M", tag).ok());
}

// Tables, a manifest that refers to them, and a log.
Rows MakeIndex(testing::SimIo& io) {
  Rows rows;
  for (const char* tag : {"first", "second", "third"}) {
    auto index = Index::Open(io, "index");
    REQUIRE(index.ok());
    AddRows(**index, tag, rows);
  }
  return rows;
}

std::vector<std::string> FilesOf(FileIo& io) {
  const auto names = io.List("index");
  REQUIRE(names.ok());
  std::vector<std::string> paths;
  for (const std::string& name : *names) paths.push_back("index/" + name);
  return paths;
}

}  // namespace

TEST_CASE("a changed byte of an index is found or does no harm") {
  testing::SimIo io;
  const Rows rows = MakeIndex(io);
  std::vector<std::string> wrong;
  for (const std::string& path : FilesOf(io)) {
    const Bytes bytes = *ReadWholeFile(io, path);
    size_t detected = 0;
    size_t tried = 0;
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const int mask : {0x01, 0x80, 0xff}) {
        const auto damaged = io.AfterKill();
        const Bytes changed(1, static_cast<char>(bytes[at] ^ mask));
        REQUIRE(damaged->Overwrite(path, at, changed));
        const auto got = ReadAll(*damaged, rows);
        ++tried;
        if (!got.ok()) {
          ++detected;
          CHECK(got.code() == Code::kCorrupt);
        } else if (*got != rows) {
          wrong.push_back(path + " at " + std::to_string(at) + " of " +
                          std::to_string(bytes.size()) + " with mask " + std::to_string(mask));
        }
      }
    }
    INFO(path << ": " << detected << " of " << tried << " detected");
    CHECK(detected > tried / 2);
  }
  CHECK(wrong == std::vector<std::string>());
}

TEST_CASE("a log whose last record was not written to its end is no damage") {
  testing::SimIo io;
  const Rows rows = MakeIndex(io);
  for (const std::string& path : FilesOf(io)) {
    if (path.find(".log") == std::string::npos) continue;
    const size_t whole = io.Stat(path)->size;
    for (size_t size = 0; size < whole; ++size) {
      INFO(path << " cut to " << size << " of " << whole);
      const auto cut = io.AfterKill();
      REQUIRE((*cut->Open(path, OpenMode::kReadWrite))->Truncate(size).ok());
      const auto got = ReadAll(*cut, rows);
      REQUIRE(got.ok());
      CHECK(got->count("first0") == 1);
    }
  }
}

}  // namespace memoirfs::meta
