// When what is written becomes a record.

#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

using Records = std::vector<std::string>;

TEST_CASE("What was written is in the chain when close returns") {
  VfsFixture f;
  const View::Created created = f.Create("notes.md");
  f.Write(created.opened.handle, 0, "remember this");
  CHECK(f.Records().empty());
  Must(f.view().Flush(created.opened.handle));
  CHECK(f.Records() == Records{"put notes.md"});
  Must(f.view().Release(created.opened.handle));
  CHECK(f.Records() == Records{"put notes.md"});
  const chain::Change put = f.Changes().at(0);
  CHECK(put.content->digest == Sha256::Of("remember this"));
  CHECK(put.actor.uid == kUser.uid);
  CHECK(f.ContentsOf("notes.md") == "remember this");
}

TEST_CASE("A flush before the first write commits nothing") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  Must(f.view().Flush(created.opened.handle));
  CHECK(f.Records().empty());
  f.Write(created.opened.handle, 0, "x\n");
  f.Close(created.opened.handle);
  CHECK(f.Records() == Records{"put f"});
}

TEST_CASE("A file that was created and never written is put at its last release") {
  VfsFixture f;
  const View::Created created = f.Create("empty");
  f.Close(created.opened.handle);
  CHECK(f.Records() == Records{"put empty"});
  CHECK(f.ContentsOf("empty").empty());
}

TEST_CASE("A truncation at open and what is written then are one version") {
  VfsFixture f;
  const NodeId node = f.Put("f", "old");
  const Opened opened = Must(f.view().Open(node, O_WRONLY | O_TRUNC, kUser));
  Must(f.view().Flush(opened.handle));
  CHECK(f.Records().size() == 1);
  CHECK(Must(f.view().GetAttributes(node)).size == 0);
  f.Write(opened.handle, 0, "new!");
  f.Close(opened.handle);
  CHECK(f.Records().size() == 2);
  CHECK(f.Contents(node) == "new!");
}

TEST_CASE("A created file and a truncation survive a crash of the daemon before they are closed") {
  VfsFixture f;
  const NodeId node = f.Put("kept", "some text");
  f.Create("made");
  Must(f.view().Open(node, O_WRONLY | O_TRUNC, kUser));
  f.Restart();
  CHECK(f.ContentsOf("made").empty());
  CHECK(f.ContentsOf("kept").empty());
}

TEST_CASE("The size of a new file that was not written yet survives a crash of the daemon") {
  VfsFixture f;
  const auto resize = [&](const View::Created& file, uint64_t size) {
    AttributeChange change;
    change.size = size;
    Must(f.view().SetAttributes(file.node.id, change, file.opened.handle, kUser));
  };
  resize(f.Create("longer"), 300'000);
  const View::Created there_and_back = f.Create("there and back");
  resize(there_and_back, 1'000);
  resize(there_and_back, 0);
  const View::Created written = f.Create("written");
  f.Write(written.opened.handle, 0, "unsaved");
  resize(written, 3);
  const View::Created between = f.Create("between");
  resize(between, 10);
  f.Write(between.opened.handle, 0, "unsaved");
  resize(between, 3);
  f.Restart();
  CHECK((f.ContentsOf("longer") == Bytes(300'000, '\0')));
  CHECK(f.ContentsOf("there and back").empty());
  CHECK(f.ContentsOf("written").empty());
  CHECK(f.ContentsOf("between") == Bytes(3, '\0'));
  f.Restart();
  CHECK((f.ContentsOf("longer") == Bytes(300'000, '\0')));
}

TEST_CASE("What was not closed is lost by a crash, and what was closed is not") {
  VfsFixture f;
  const NodeId closed = f.Put("closed", "text");
  const View::Created open = f.Create("open");
  f.Write(open.opened.handle, 0, "unsaved");
  f.Restart();
  CHECK(f.Contents(closed) == "text");
  CHECK(f.ContentsOf("open").empty());
}

TEST_CASE("Equal content with new times is an attr record") {
  VfsFixture f;
  const NodeId node = f.Put("f", "same");
  f.clock().Advance(kSecond);
  const Opened opened = Must(f.view().Open(node, O_WRONLY, kUser));
  f.Write(opened.handle, 0, "same");
  f.Close(opened.handle);
  CHECK(f.Records() == Records{"put f", "attr f"});
  CHECK(Must(f.view().GetAttributes(node)).attributes.mtime == f.clock().Now());
}

TEST_CASE("Fsync commits and makes durable") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  f.Write(created.opened.handle, 0, "x");
  const volume::VolumeFacts before = f.volume().Facts();
  Must(f.view().Fsync(created.opened.handle));
  CHECK(f.volume().Facts().barriers == before.barriers + 1);
  CHECK(f.volume().Facts().durable > before.end);
  CHECK(f.Records() == Records{"put f"});
}

TEST_CASE("Fsync of a directory commits the files created in it and no others") {
  VfsFixture f;
  f.Create("here");
  const Node dir = Must(f.view().MakeDirectory(f.memory(), "dir", 0755, kUser));
  Must(f.view().Create(dir.id, "there", 0644, O_WRONLY, kUser));
  Must(f.view().FsyncDirectory(f.memory()));
  CHECK(f.Records() == Records{"mkdir dir", "put here"});
}

TEST_CASE("A release of a handle that left something dirty commits it") {
  VfsFixture f;
  const NodeId node = f.Put("f", "old");
  const Opened opened = Must(f.view().Open(node, O_RDWR, kUser));
  f.Write(opened.handle, 0, "NEW");  // as a store of a mapping does after close
  Must(f.view().Release(opened.handle));
  CHECK(f.Records().size() == 2);
  CHECK(f.Contents(node) == "NEW");
}

TEST_CASE("A file is committed before it is renamed or linked") {
  VfsFixture f;
  const View::Created created = f.Create("f.tmp");
  f.Write(created.opened.handle, 0, "x");
  Must(f.view().Rename(f.memory(), "f.tmp", f.memory(), "f", volume::RenameMode::kReplace, kUser));
  CHECK(f.Records() == Records{"put f.tmp", "rename f"});
  f.Write(created.opened.handle, 1, "y");
  Must(f.view().MakeLink(created.node.id, f.memory(), "g", kUser));
  CHECK(f.Records() == Records{"put f.tmp", "rename f", "put f", "link g"});
  f.Close(created.opened.handle);
  CHECK(f.Records().size() == 4);
}

TEST_CASE("The janitor commits what is dirty and idle, and what is dirty for long") {
  VfsFixture f;
  const View::Created idle = f.Create("idle");
  f.Write(idle.opened.handle, 0, "x");
  f.vfs().RunJanitorOnce();
  CHECK(f.Records().empty());
  f.clock().Advance(5 * kSecond);
  f.vfs().RunJanitorOnce();
  CHECK(f.Records() == Records{"put idle"});

  const View::Created busy = f.Create("busy");
  for (int i = 0; i < 30; ++i) {
    f.Write(busy.opened.handle, 0, "x");
    f.vfs().RunJanitorOnce();
    CHECK(f.Records().size() == 1);
    f.clock().Advance(kSecond);
  }
  f.vfs().RunJanitorOnce();
  CHECK(f.Records().size() == 2);
}

TEST_CASE("CommitAll of a view commits what its handles left dirty") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  f.Write(created.opened.handle, 0, "x");
  Must(f.view().CommitAll());
  CHECK(f.Records() == Records{"put f"});
}

TEST_CASE("A full budget of dirty bytes commits instead of growing") {
  VfsOptions options;
  options.dirty_budget = 1 << 20;
  VfsFixture f(options);
  const Bytes piece(100'000, 'x');
  for (int i = 0; i < 40; ++i) {
    const View::Created created = f.Create("f" + std::to_string(i));
    f.Write(created.opened.handle, 0, piece);
    CHECK(f.vfs().dirty_bytes() <= options.dirty_budget + piece.size());
  }
  const View::Created gone = f.Create("gone");
  Must(f.view().Unlink(f.memory(), "gone", kUser));
  for (uint64_t i = 0; i < 60; ++i) {
    f.Write(gone.opened.handle, i * piece.size(), piece);
    CHECK(f.vfs().dirty_bytes() <= options.dirty_budget + 2 * cas::kChunkSize);
  }
  CHECK(Must(f.view().Read(gone.opened.handle, 59 * piece.size(), 1)) == "x");
}

TEST_CASE("Dirty bytes are given back when a file is committed or dropped") {
  VfsFixture f;
  f.Put("a", Bytes(300'000, 'a'));
  CHECK(f.vfs().dirty_bytes() == 0);
  const View::Created created = f.Create("b");
  f.Write(created.opened.handle, 0, Bytes(300'000, 'b'));
  CHECK(f.vfs().dirty_bytes() == 300'000);
  CHECK(f.vfs().open_files() == 1);
  Must(f.view().Unlink(f.memory(), "b", kUser));
  f.Close(created.opened.handle);
  CHECK(f.vfs().dirty_bytes() == 0);
  CHECK(f.vfs().open_files() == 0);
}

}  // namespace
}  // namespace memoirfs::vfs
