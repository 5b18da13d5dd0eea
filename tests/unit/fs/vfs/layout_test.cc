// What a mount shows around the memory.

#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

TEST_CASE("A mount of all agents shows each agent, and a mount of one shows that one") {
  VfsFixture f;
  Must(f.volume().AddAgent("bob", 1, 1));
  const Node ada = Must(f.view().Lookup(kRootNode, "ada"));
  CHECK(Must(f.view().Lookup(ada.id, "memory")).id == f.memory());
  CHECK(f.view().Lookup(kRootNode, "eve").code() == Code::kNotFound);

  const auto one = f.OpenView({"ada", false});
  CHECK(Must(one->Lookup(kRootNode, "memory")).id == f.memory());
  CHECK(Must(one->GetAttributes(kRootNode)).id == kRootNode);
  // Numbers of another agent mean nothing there.
  const NodeId bob = Must(f.view().Lookup(Must(f.view().Lookup(kRootNode, "bob")).id, "memory")).id;
  CHECK(one->GetAttributes(bob).code() == Code::kStale);
  CHECK(f.vfs().OpenView({"eve", false}, nullptr).status().code() == Code::kNotFound);
}

TEST_CASE("Virtual directories have the owner of the memory and nobody may write them") {
  VfsFixture f;
  const Node ada = Must(f.view().Lookup(kRootNode, "ada"));
  const uint32_t memory = Must(f.view().GetAttributes(f.memory())).attributes.mode;
  CHECK(ada.attributes.mode == (S_IFDIR | (memory & 0555)));
  CHECK(ada.attributes.uid == kUser.uid);
  CHECK(ada.cacheable);
  // Work in the memory changes nothing of them, as nothing announces it.
  f.clock().Advance(kSecond);
  f.Put("f", "x");
  CHECK(Must(f.view().GetAttributes(ada.id)).attributes == ada.attributes);
  CHECK(f.view().MakeDirectory(ada.id, "x", 0755, kUser).code() == Code::kReadOnly);
  CHECK(
      f.view().Rename(ada.id, "memory", ada.id, "x", volume::RenameMode::kReplace, kUser).code() ==
      Code::kReadOnly);
}

TEST_CASE("memory/shared answers EROFS to every change and cannot be replaced") {
  VfsFixture f;
  const Node shared = Must(f.view().Lookup(f.memory(), "shared"));
  CHECK(shared.attributes.IsDirectory());
  CHECK(f.view().MakeDirectory(shared.id, "x", 0755, kUser).code() == Code::kReadOnly);
  CHECK(f.view().Create(shared.id, "x", 0644, O_RDWR, kUser).status().code() == Code::kReadOnly);
  CHECK(f.view().SetAttributes(shared.id, {}, std::nullopt, kUser).code() == Code::kReadOnly);
  CHECK(f.view().SetXattr(shared.id, "user.a", "b", 0, kUser).code() == Code::kReadOnly);
  CHECK(f.view().RemoveDirectory(f.memory(), "shared", kUser).code() == Code::kReadOnly);
  CHECK(f.view().MakeDirectory(f.memory(), "shared", 0755, kUser).code() == Code::kExists);
  CHECK(f.view().Create(f.memory(), "shared", 0644, O_RDWR, kUser).status().code() ==
        Code::kExists);
  f.Put("f", "x");
  const auto rename = [&](const char* from, const char* to) {
    return f.view().Rename(f.memory(), from, f.memory(), to, volume::RenameMode::kReplace, kUser);
  };
  CHECK(rename("f", "shared").code() == Code::kReadOnly);
  CHECK(rename("shared", "f").code() == Code::kReadOnly);
  const Node dir = Must(f.view().MakeDirectory(f.memory(), "dir", 0755, kUser));
  Must(f.view().MakeDirectory(dir.id, "shared", 0755, kUser));
}

TEST_CASE("A read-only view answers EROFS to every change and reads") {
  VfsFixture f;
  const NodeId node = f.Put("f", "x");
  const auto view = f.OpenView({std::nullopt, true});
  CHECK(view->Create(f.memory(), "g", 0644, O_RDWR, kUser).status().code() == Code::kReadOnly);
  CHECK(view->Open(node, O_RDWR, kUser).status().code() == Code::kReadOnly);
  CHECK(view->Unlink(f.memory(), "f", kUser).code() == Code::kReadOnly);
  CHECK(VfsFixture::ContentsIn(*view, node) == "x");
}

TEST_CASE("status.json is rendered by its source when it is asked for") {
  VfsFixture f;
  int calls = 0;
  f.vfs().SetStatusSource([&](const std::optional<std::string>& agent) {
    return "{\"agent\":\"" + agent.value_or("") + "\",\"n\":" + std::to_string(++calls) + "}\n";
  });
  const Node ada = Must(f.view().Lookup(kRootNode, "ada"));
  const Node memoir = Must(f.view().Lookup(ada.id, ".memoir"));
  const Node status = Must(f.view().Lookup(memoir.id, "status.json"));
  CHECK_FALSE(status.cacheable);
  CHECK(status.size == 22);
  const Opened opened = Must(f.view().Open(status.id, O_RDONLY, kUser));
  CHECK(opened.direct_io);
  CHECK(Must(f.view().Read(opened.handle, 0, 100)) == "{\"agent\":\"ada\",\"n\":2}\n");
  CHECK(Must(f.view().Read(opened.handle, 14, 3)) == ",\"n");
  CHECK(f.view().Open(status.id, O_WRONLY, kUser).status().code() == Code::kReadOnly);
}

TEST_CASE("chain.jsonl grows as records become durable, and is readable at any offset") {
  VfsFixture f;
  const NodeId chain = VirtualNode(f.stream(), VirtualKind::kChain);
  f.Put("f", "x");
  Must(f.volume().RunCommitterOnce());
  const Bytes before = f.Contents(chain);
  CHECK(before.find("memoirfs.put") != before.npos);
  CHECK(before.back() == '\n');
  CHECK(Must(f.view().GetAttributes(chain)).size == before.size());
  const Opened tail = Must(f.view().Open(chain, O_RDONLY, kUser));
  CHECK(Must(f.view().Read(tail.handle, before.size(), 1000)).empty());
  f.Put("g", "x");
  Must(f.volume().RunCommitterOnce());
  const Bytes more = Must(f.view().Read(tail.handle, before.size(), 1 << 20));
  CHECK(more.find("memoirfs.put") != more.npos);
  CHECK(f.Contents(chain) == before + more);
}

}  // namespace
}  // namespace memoirfs::vfs
