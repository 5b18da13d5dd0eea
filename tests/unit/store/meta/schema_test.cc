#include "store/meta/schema.h"

#include <catch2/catch.hpp>
#include <set>

namespace memoirfs::meta {
namespace {

const StreamId kStream(3);
const InodeId kParent(77);

ContentId SomeContent() { return {Sha256::Of("content"), 123456789, ContentKind::kTree}; }

InodeRow SomeInode() {
  InodeRow row;
  row.attributes = {0100644, 1000, 1001, 7, -1, 1'700'000'000'123'456'789, 3, 4};
  row.nlink = 2;
  row.content = SomeContent();
  row.seq = Seq(99);
  return row;
}

StreamRow SomeStream() {
  return {"scout", true, Seq(12), Sha256::Of("head"), 1'700'000'000'000'000'000, 4711};
}

// Whatever is not exactly a row must be refused: cut off, too long, of another version.
template <typename Decode>
void CheckStrict(const Bytes& row, Decode decode) {
  REQUIRE(decode(row).ok());
  for (size_t size = 0; size < row.size(); ++size) {
    INFO("the first " << size << " bytes");
    CHECK(decode(ByteView(row).substr(0, size)).code() == Code::kCorrupt);
  }
  CHECK(decode(row + '\0').code() == Code::kCorrupt);
  Bytes newer = row;
  newer[0] = 2;
  CHECK(decode(newer).code() == Code::kCorrupt);
}

}  // namespace

TEST_CASE("a row of every table decodes to what was encoded") {
  const auto dentry = DentryRow::Decode(DentryRow{InodeId(5), Cookie(6), S_IFDIR}.Encode());
  REQUIRE(dentry.ok());
  CHECK(dentry->ino == InodeId(5));
  CHECK(dentry->cookie == Cookie(6));
  CHECK(dentry->type == S_IFDIR);

  const auto cookie = CookieRow::Decode(CookieRow{"notes.md", InodeId(5), S_IFREG}.Encode());
  REQUIRE(cookie.ok());
  CHECK(cookie->name == "notes.md");
  CHECK(cookie->ino == InodeId(5));
  CHECK(cookie->type == S_IFREG);

  const auto inode = InodeRow::Decode(SomeInode().Encode());
  REQUIRE(inode.ok());
  CHECK(*inode == SomeInode());

  const auto history = NameHistoryRow::Decode(NameHistoryRow{InodeId(8)}.Encode());
  REQUIRE(history.ok());
  CHECK(history->ino == InodeId(8));

  const auto content = DecodeContentRow(EncodeContentRow(SomeContent()));
  REQUIRE(content.ok());
  CHECK(*content == SomeContent());

  const journal::Location where{{42, true}, 4096, 300, journal::FrameType::kExtend};
  const auto location = DecodeLocation(EncodeLocation(where));
  REQUIRE(location.ok());
  CHECK(*location == where);

  const auto stream = StreamRow::Decode(SomeStream().Encode());
  REQUIRE(stream.ok());
  CHECK(*stream == SomeStream());

  const auto checkpoint = CheckpointRow::Decode(CheckpointRow{{9, 512}, 3}.Encode());
  REQUIRE(checkpoint.ok());
  CHECK(checkpoint->lsn == journal::Lsn{9, 512});
  CHECK(checkpoint->generation == 3);
}

TEST_CASE("bytes that are not exactly a row of a known version are refused") {
  CheckStrict(DentryRow{InodeId(5), Cookie(6), S_IFDIR}.Encode(), DentryRow::Decode);
  CheckStrict(CookieRow{"name", InodeId(5), S_IFREG}.Encode(), CookieRow::Decode);
  CheckStrict(SomeInode().Encode(), InodeRow::Decode);
  CheckStrict(NameHistoryRow{InodeId(8)}.Encode(), NameHistoryRow::Decode);
  CheckStrict(EncodeContentRow(SomeContent()), DecodeContentRow);
  CheckStrict(EncodeLocation({{1, false}, 0, 1, journal::FrameType::kBlob}), DecodeLocation);
  CheckStrict(SomeStream().Encode(), StreamRow::Decode);
  CheckStrict(CheckpointRow{{9, 512}, 3}.Encode(), CheckpointRow::Decode);
}

TEST_CASE("values that no writer makes are refused") {
  // The kind of a content, the type of a frame, a flag.
  Bytes content = EncodeContentRow(SomeContent());
  content.back() = 2;
  CHECK(DecodeContentRow(content).code() == Code::kCorrupt);

  const journal::Location record{{1, false}, 0, 1, journal::FrameType::kRecord};
  CHECK(DecodeLocation(EncodeLocation(record)).code() == Code::kCorrupt);

  StreamRow stream;
  stream.agent = "a";
  Bytes row = stream.Encode();
  row[1 + 4 + 1] = 2;  // behind version, length and name
  CHECK(StreamRow::Decode(row).code() == Code::kCorrupt);

  // A length that reaches beyond the row.
  Bytes cookie = CookieRow{"name", InodeId(5), S_IFREG}.Encode();
  cookie[1 + 8 + 4] = '\x7f';
  CHECK(CookieRow::Decode(cookie).code() == Code::kCorrupt);
}

TEST_CASE("keys say what they were made of") {
  CHECK(CookieOfKey(CookieKey(kStream, kParent, Cookie(1ULL << 40))) == Cookie(1ULL << 40));
  CHECK(InodeOfKey(InodeKey(kStream, InodeId(12))) == InodeId(12));
  CHECK(XattrNameOfKey(XattrKey(kStream, InodeId(12), "user.a")) == "user.a");
  CHECK(StreamOfKey(StreamKey(kStream)) == kStream);
  CHECK(DigestOfCorruptKey(CorruptKey(Sha256::Of("x"))) == Sha256::Of("x"));
  const StreamInode orphan = StreamInodeOfOrphanKey(OrphanKey(kStream, InodeId(12)));
  CHECK(orphan.stream == kStream);
  CHECK(orphan.ino == InodeId(12));
}

TEST_CASE("a key that is too short is read as zeros, not beyond its end") {
  CHECK(CookieOfKey("C") == Cookie(0));
  CHECK(XattrNameOfKey("X12").empty());
  CHECK(DigestOfCorruptKey("Qabc").IsZero());
  CHECK(StreamOfKey("").value == 0);
  CHECK(StreamInodeOfOrphanKey("O").ino == InodeId(0));
}

TEST_CASE("every table has keys of its own") {
  const std::set<char> tables = {DentryPrefix(kStream, kParent)[0],
                                 CookiePrefix(kStream, kParent)[0],
                                 TablePrefix(Table::kInode, kStream)[0],
                                 VersionPrefix(kStream, kParent)[0],
                                 NameHistoryPrefix(kStream, kParent, "a")[0],
                                 XattrPrefix(kStream, kParent)[0],
                                 OrphanPrefix()[0],
                                 LocationKey(Sha256::Of("x"))[0],
                                 BulkKey(1)[0],
                                 StreamPrefix()[0],
                                 CorruptPrefix()[0],
                                 CheckpointKey()[0]};
  CHECK(tables.size() == 12);
}

TEST_CASE("keys sort as what they mean") {
  SECTION("cookies as numbers, not as text") {
    CHECK(CookieKey(kStream, kParent, Cookie(9)) < CookieKey(kStream, kParent, Cookie(10)));
    CHECK(CookieKey(kStream, kParent, Cookie(255)) < CookieKey(kStream, kParent, Cookie(256)));
  }
  SECTION("versions newest first") {
    CHECK(VersionKey(kStream, kParent, Seq(10)) < VersionKey(kStream, kParent, Seq(9)));
    CHECK(NameHistoryKey(kStream, kParent, "a", Seq(256)) <
          NameHistoryKey(kStream, kParent, "a", Seq(255)));
  }
  SECTION("a directory's names together, before those of the next inode") {
    CHECK(DentryKey(kStream, kParent, std::string(255, '\xff')) <
          DentryKey(kStream, InodeId(kParent.value + 1), "a"));
  }
  SECTION("a stream's rows together") {
    CHECK(InodeKey(kStream, InodeId(~0ULL)) < InodeKey(StreamId(4), InodeId(1)));
  }
}

TEST_CASE("the history of a name does not contain that of a longer one") {
  const Bytes prefix = NameHistoryPrefix(kStream, kParent, "a");
  const Bytes other = NameHistoryKey(kStream, kParent, "ab", Seq(1));
  CHECK(ByteView(other).substr(0, prefix.size()) != prefix);
  const Bytes own = NameHistoryKey(kStream, kParent, "a", Seq(1));
  CHECK(ByteView(own).substr(0, prefix.size()) == prefix);
}

}  // namespace memoirfs::meta
