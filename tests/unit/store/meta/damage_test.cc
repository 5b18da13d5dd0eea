// Each byte of each file of a small index is changed in turn: the index must say that it is
// corrupt, when it is opened or when it is read, or answer what it answered before.

#include <catch2/catch.hpp>
#include <map>

#include "store/meta/index.h"
#include "tests/unit/store/meta/memory_io.h"

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
Rows MakeIndex(test::MemoryIo& io) {
  Rows rows;
  for (const char* tag : {"first", "second", "third"}) {
    auto index = Index::Open(io, "index");
    REQUIRE(index.ok());
    AddRows(**index, tag, rows);
  }
  return rows;
}

}  // namespace

TEST_CASE("a changed byte of an index is found or does no harm") {
  test::MemoryIo io;
  const Rows rows = MakeIndex(io);
  const test::MemoryIo::Files intact = io.Snapshot();
  std::map<std::string, std::pair<int, int>> detected_of;  // by file, of how many
  std::vector<std::string> wrong;
  for (const auto& [path, bytes] : intact) {
    for (size_t at = 0; at < bytes->size(); ++at) {
      for (const int mask : {0x01, 0x80, 0xff}) {
        io.Restore(intact);
        test::MemoryIo::Files damaged = io.Snapshot();
        Bytes& target = *damaged[path];
        target[at] = static_cast<char>(target[at] ^ mask);
        io.Restore(damaged);
        const auto got = ReadAll(io, rows);
        auto& [detected, tried] = detected_of[path];
        ++tried;
        if (!got.ok()) {
          ++detected;
          CHECK(got.code() == Code::kCorrupt);
        } else if (*got != rows) {
          wrong.push_back(path + " at " + std::to_string(at) + " of " +
                          std::to_string(bytes->size()) + " with mask " + std::to_string(mask));
        }
      }
    }
  }
  for (const auto& [path, counts] : detected_of) {
    INFO(path << ": " << counts.first << " of " << counts.second << " detected");
    CHECK(counts.first > counts.second / 2);
  }
  CHECK(wrong == std::vector<std::string>());
}

TEST_CASE("a log whose last record was not written to its end is no damage") {
  test::MemoryIo io;
  const Rows rows = MakeIndex(io);
  const test::MemoryIo::Files intact = io.Snapshot();
  for (const auto& [path, bytes] : intact) {
    if (path.find(".log") == std::string::npos) continue;
    for (size_t size = 0; size < bytes->size(); ++size) {
      INFO(path << " cut to " << size << " of " << bytes->size());
      test::MemoryIo cut;
      REQUIRE(cut.MakeDirectory("index").ok());
      cut.Restore(intact);
      auto file = cut.Open(path, OpenMode::kReadWrite);
      REQUIRE(file.ok());
      REQUIRE((*file)->Truncate(size).ok());
      const auto got = ReadAll(cut, rows);
      REQUIRE(got.ok());
      CHECK(got->count("first0") == 1);
    }
  }
}

}  // namespace memoirfs::meta
