#include <set>

#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

std::vector<DirectoryEntry> List(View& view, NodeId node, uint64_t offset, size_t limit,
                                 bool with_attributes = false) {
  std::vector<DirectoryEntry> entries;
  Must(view.ReadDirectory(node, offset, with_attributes, [&](const DirectoryEntry& entry) {
    if (entries.size() == limit) return false;
    entries.push_back(entry);
    return true;
  }));
  return entries;
}

std::vector<std::string> Names(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  return names;
}

using NamesOf = std::vector<std::string>;

TEST_CASE("Every directory of a mount lists its dots and its entries") {
  VfsFixture f;
  Must(f.volume().AddAgent("bob", 1, 1));
  f.Put("f", "12345");
  CHECK(Names(List(f.view(), kRootNode, 0, 100)) == NamesOf{".", "..", "ada", "bob"});
  const NodeId ada = Must(f.view().Lookup(kRootNode, "ada")).id;
  CHECK(Names(List(f.view(), ada, 0, 100)) == NamesOf{".", "..", "memory", ".memoir"});
  const NodeId memoir = Must(f.view().Lookup(ada, ".memoir")).id;
  CHECK(Names(List(f.view(), memoir, 0, 100)) == NamesOf{".", "..", "status.json", "chain.jsonl"});
  CHECK(Names(List(f.view(), f.memory(), 0, 100)) == NamesOf{".", "..", "shared", "f"});
  const NodeId shared = Must(f.view().Lookup(f.memory(), "shared")).id;
  CHECK(Names(List(f.view(), shared, 0, 100)) == NamesOf{".", ".."});
}

TEST_CASE("Listings with attributes show what is not committed") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  f.Write(created.opened.handle, 0, "12345");
  const auto entries = List(f.view(), f.memory(), 3, 100, true);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].node.id == created.node.id);
  CHECK(entries[0].node.size == 5);
}

TEST_CASE("Dots lead to the directory and to its parent") {
  VfsFixture f;
  const Node dir = Must(f.view().MakeDirectory(f.memory(), "dir", 0755, kUser));
  const Node sub = Must(f.view().MakeDirectory(dir.id, "sub", 0755, kUser));
  const auto entries = List(f.view(), sub.id, 0, 2);
  CHECK(entries[0].node.id == sub.id);
  CHECK(entries[1].node.id == dir.id);
}

TEST_CASE("A listing of 10,000 entries goes on at any offset, each entry once") {
  VfsFixture f;
  for (int i = 0; i < 10'000; ++i) {
    Must(f.volume().MakeSymlink(f.stream(), kRootInode, std::to_string(i), {}, "t", {}));
  }
  const auto all = List(f.view(), f.memory(), 0, 20'000);
  REQUIRE(all.size() == 10'003);
  const auto names = Names(all);
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == all.size());
  for (size_t i = 0; i < all.size(); i += 97) {
    const auto rest = List(f.view(), f.memory(), all[i].next_offset, 3);
    const size_t left = std::min<size_t>(3, all.size() - i - 1);
    REQUIRE(rest.size() == left);
    for (size_t k = 0; k < left; ++k) CHECK(rest[k].name == all[i + 1 + k].name);
  }
  // Pages as the kernel takes them, with removals between them.
  std::set<std::string> seen;
  uint64_t offset = 0;
  for (auto page = List(f.view(), f.memory(), 0, 700); !page.empty();
       page = List(f.view(), f.memory(), offset, 700)) {
    for (const DirectoryEntry& entry : page) CHECK(seen.insert(entry.name).second);
    offset = page.back().next_offset;
    if (page.back().name != "..") {
      Must(f.view().Unlink(f.memory(), page.back().name, kUser));
    }
  }
  CHECK(seen.size() == 10'003);
}

TEST_CASE("A file cannot be listed") {
  VfsFixture f;
  const NodeId status = VirtualNode(f.stream(), VirtualKind::kStatus);
  const View::AddEntry none = [](const DirectoryEntry&) { return true; };
  CHECK(f.view().ReadDirectory(status, 2, false, none).code() == Code::kNotDirectory);
}

}  // namespace
}  // namespace memoirfs::vfs
