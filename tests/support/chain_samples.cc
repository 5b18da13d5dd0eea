#include "tests/support/chain_samples.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>

#include "store/base/json_writer.h"

namespace memoirfs::test {
namespace {

using chain::Actor;
using chain::Change;
using chain::Op;

constexpr Nanos kStart = 1'796'069'320'123'456'789;
constexpr InodeId kFile{2};
constexpr InodeId kDirectory{3};

Attributes AttributesOf(uint32_t mode) {
  return Attributes{mode, 1000, 1000, 0, kStart, kStart + 1, kStart + 2, kStart};
}

Attributes OnlyCtime() {
  Attributes attributes;
  attributes.ctime = kStart + 3;
  return attributes;
}

ContentId ContentOf(std::string_view text, ContentKind kind = ContentKind::kFlat) {
  return ContentId{Sha256::Of(text), text.size(), kind};
}

Change Entry(Op op, InodeId ino, std::string name, uint32_t mode) {
  Change change;
  change.op = op;
  change.ino = ino;
  change.parent = kRootInode;
  change.path = name;
  change.name = std::move(name);
  change.cookie = Cookie(ino.value);
  change.attributes = AttributesOf(mode);
  change.actor = Actor{1000, 1000, 4242, "python3"};
  return change;
}

Change Removal(Op op, InodeId ino, std::string name) {
  Change change = Entry(op, ino, std::move(name), 0);
  change.cookie = Cookie(0);
  change.attributes = OnlyCtime();
  return change;
}

Change Event(Op op, std::string detail) {
  Change change;
  change.op = op;
  change.detail = std::move(detail);
  return change;
}

std::vector<Change> TreeChanges() {
  std::vector<Change> changes;
  changes.push_back(Entry(Op::kPut, kFile, "notes.md", S_IFREG | 0644));
  changes.back().content = ContentOf("hello");
  changes.push_back(Entry(Op::kMkdir, kDirectory, "메모 \U0001f600", S_IFDIR | 0755));
  changes.push_back(Entry(Op::kSymlink, InodeId(4), "link", S_IFLNK | 0777));
  changes.back().content = ContentOf("notes.md");
  changes.push_back(Entry(Op::kLink, kFile, "other\u2028name\\", 0));
  changes.back().attributes = OnlyCtime();
  changes.push_back(Removal(Op::kRename, kFile, "notes.md"));
  changes.back().new_parent = kDirectory;
  changes.back().new_name = "tab\there";
  changes.back().replaced = InodeId(4);
  changes.back().cookie = Cookie(9);
  changes.push_back(Entry(Op::kAttr, kFile, "", S_IFREG | 0600));
  changes.push_back(Entry(Op::kXattr, kFile, "", 0));
  changes.back().xattr_name = "user.note";
  changes.back().content = ContentOf("value");
  changes.push_back(Removal(Op::kUnlink, kFile, "other\u2028name\\"));
  changes.push_back(Removal(Op::kRmdir, kDirectory, "메모 \U0001f600"));
  return changes;
}

// Characters that have gone wrong somewhere: escapes, controls, several bytes, line separators,
// surrogate pairs, both sides of the order of UTF-16.
std::string RandomText(std::mt19937& random, size_t max_characters) {
  static const std::vector<std::string> kCharacters{
      "a",      "Z",      " ",      "/",      "\\",     "\"",         "\n",     "\t",
      "\x01",   "\x1f",   "\x7f",   "\u0080", "é",      "한",         "\u2028", "\u2029",
      "\ud7ff", "\ue000", "\uffff", "\ufeff", "\u0301", "\U0001f600", "{",      "\U0010ffff"};
  std::uniform_int_distribution<size_t> length(0, max_characters);
  std::uniform_int_distribution<size_t> character(0, kCharacters.size() - 1);
  std::string text;
  for (size_t left = length(random); left > 0; --left) text += kCharacters[character(random)];
  return text;
}

// Zero, small, and up to `max`, all often.
uint64_t RandomNumber(std::mt19937& random, uint64_t max) {
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return std::min<uint64_t>(random() % 100, max);
    case 2:
      return max;
    default:
      return std::uniform_int_distribution<uint64_t>(0, max)(random);
  }
}

Nanos RandomTime(std::mt19937& random) {
  const auto time = static_cast<Nanos>(RandomNumber(random, INT64_MAX));
  return random() % 2 == 0 ? time : -time;
}

bool Maybe(std::mt19937& random) { return random() % 2 == 0; }

ContentId RandomContent(std::mt19937& random) {
  return ContentId{Sha256::Of(std::to_string(random())), RandomNumber(random, kMaxJsonInteger),
                   Maybe(random) ? ContentKind::kFlat : ContentKind::kTree};
}

Attributes RandomAttributes(std::mt19937& random) {
  Attributes attributes;
  attributes.mode = static_cast<uint32_t>(RandomNumber(random, UINT32_MAX));
  attributes.uid = static_cast<uint32_t>(RandomNumber(random, UINT32_MAX));
  attributes.gid = static_cast<uint32_t>(RandomNumber(random, UINT32_MAX));
  attributes.rdev = RandomNumber(random, kMaxJsonInteger);
  attributes.atime = RandomTime(random);
  attributes.mtime = RandomTime(random);
  attributes.ctime = RandomTime(random);
  attributes.btime = RandomTime(random);
  return attributes;
}

std::string RandomDetail(std::mt19937& random) {
  if (Maybe(random)) return {};
  CanonicalWriter out;
  out.Signed("count", RandomTime(random) % static_cast<Nanos>(kMaxJsonInteger));
  out.BeginObject("integrity");  // like the record's own, which must not be taken for it
  out.String("alg", "sha-256");
  out.String("hash", RandomText(random, 4));
  out.EndObject();
  out.String("text", RandomText(random, 20));
  return out.Finish().value();
}

}  // namespace

chain::RecordContext SampleContext() {
  return {StreamId(7), "0f8fad5b-d9cb-469f-a165-70867728950e", "agent-1",
          "7c9e6679-7425-40de-944b-e07fc1f90ae7"};
}

std::vector<Change> SampleChanges() {
  std::vector<Change> changes;
  changes.push_back(Event(Op::kGenesis, R"({"agent":"agent-1"})"));
  changes.back().ino = kRootInode;
  changes.back().attributes = AttributesOf(S_IFDIR | 0700);
  changes.push_back(Event(Op::kSession, R"({"host":"h","pid":1})"));
  for (Change& change : TreeChanges()) changes.push_back(std::move(change));
  for (const Op op : {Op::kPull, Op::kPush, Op::kRestore, Op::kRecover, Op::kQuarantine,
                      Op::kRepair, Op::kRetain, Op::kEvent, Op::kCard}) {
    changes.push_back(Event(op, R"({"what":"\u2028","why":null})"));
  }
  changes.push_back(Event(Op::kSnapshot, "{}"));
  changes.back().content = ContentOf("a tree", ContentKind::kTree);
  return changes;
}

Change RandomChange(std::mt19937& random) {
  Change change;
  change.op = static_cast<Op>(random() % (static_cast<unsigned>(Op::kCard) + 1));
  change.ino = InodeId(RandomNumber(random, kMaxJsonInteger));
  change.parent = InodeId(RandomNumber(random, kMaxJsonInteger));
  change.name = RandomText(random, 20);
  change.new_parent = InodeId(RandomNumber(random, kMaxJsonInteger));
  change.new_name = RandomText(random, 20);
  if (Maybe(random)) change.replaced = InodeId(RandomNumber(random, kMaxJsonInteger));
  change.exchange = Maybe(random);
  change.cookie = Cookie(RandomNumber(random, kMaxJsonInteger));
  change.other_cookie = Cookie(RandomNumber(random, kMaxJsonInteger));
  if (Maybe(random)) change.attributes = RandomAttributes(random);
  if (Maybe(random)) change.content = RandomContent(random);
  if (Maybe(random)) change.replaced_content = RandomContent(random);
  change.xattr_name = RandomText(random, 10);
  change.path = RandomText(random, 300);
  change.detail = RandomDetail(random);
  if (Maybe(random)) {
    change.actor =
        Actor{static_cast<uint32_t>(random()), static_cast<uint32_t>(random()),
              static_cast<int32_t>(RandomNumber(random, INT32_MAX)), RandomText(random, 15)};
  }
  return change;
}

std::vector<chain::SealedRecord> SampleChain(size_t count) {
  const std::vector<Change> changes = SampleChanges();
  std::vector<chain::SealedRecord> records;
  chain::Head head;
  for (size_t i = 0; i < count; ++i) {
    const Change& change = changes[i % changes.size()];
    const Nanos now = kStart + static_cast<Nanos>(i) * 1'000'000;
    records.push_back(chain::SealRecord(SampleContext(), head, change, now).value());
    head = chain::Head{records.back().seq, records.back().hash, records.back().ts};
  }
  return records;
}

}  // namespace memoirfs::test
