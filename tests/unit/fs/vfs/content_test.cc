// Contents of files through a view.

#include <linux/falloc.h>
#include <unistd.h>

#include <random>

#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

Bytes RandomText(std::mt19937& random, size_t size) {
  Bytes bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST_CASE("An append extends the object that is stored already") {
  VfsFixture f;
  const Bytes log(100'000, 'l');
  const NodeId node = f.Put("log", log);
  const Opened opened = Must(f.view().Open(node, O_WRONLY | O_APPEND, kUser));
  const journal::Lsn before = f.volume().Facts().end;
  const Bytes line = Bytes(79, '-') + "\n";
  f.Write(opened.handle, 0, line);
  f.Close(opened.handle);
  const journal::Lsn after = f.volume().Facts().end;
  CHECK(after.journal == before.journal);
  CHECK(after.offset - before.offset < 3000);
  CHECK(f.Contents(node) == log + line);
}

TEST_CASE("Offsets of O_APPEND are chosen at the end, whatever the caller says") {
  VfsFixture f;
  const View::Created created = f.Create("log", O_WRONLY | O_APPEND);
  f.Write(created.opened.handle, 0, "one ");
  f.Write(created.opened.handle, 0, "two");
  f.Close(created.opened.handle);
  CHECK(f.ContentsOf("log") == "one two");
}

TEST_CASE("What was changed through a mapping of a file opened for appending goes to its place") {
  VfsFixture f;
  const View::Created created = f.Create("log", O_RDWR | O_APPEND);
  f.Write(created.opened.handle, 0, "one two");
  Must(f.view().Write(created.opened.handle, 0, "ONE two", true, kUser));
  f.Close(created.opened.handle);
  CHECK(f.ContentsOf("log") == "ONE two");
}

TEST_CASE("Big files are read as they were written, before and after they are committed") {
  const uint64_t size = GENERATE(uint64_t{3} << 20, (uint64_t{20} << 20) + 12'345);
  VfsFixture f;
  std::mt19937 random(1);
  const Bytes content = RandomText(random, size);
  const View::Created created = f.Create("big");
  for (uint64_t at = 0; at < size; at += 128 * 1024) {
    f.Write(created.opened.handle, at, ByteView(content).substr(at, 128 * 1024));
  }
  CHECK(f.vfs().dirty_bytes() <= (uint64_t{8} << 20) + cas::kChunkSize);
  CHECK(f.Contents(created.node.id) == content);
  f.Close(created.opened.handle);
  CHECK(f.vfs().dirty_bytes() == 0);
  CHECK(f.Contents(created.node.id) == content);
  f.Restart();
  CHECK(f.ContentsOf("big") == content);
}

TEST_CASE("A file of a terabyte with one byte at its end costs a byte") {
  VfsFixture f;
  const uint64_t end = uint64_t{1} << 40;
  const View::Created created = f.Create("sparse");
  f.Write(created.opened.handle, end - 1, "!");
  f.Close(created.opened.handle);
  const Node node = Must(f.view().Lookup(f.memory(), "sparse"));
  CHECK(node.size == end);
  const Opened opened = Must(f.view().Open(node.id, O_RDONLY, kUser));
  CHECK(Must(f.view().Read(opened.handle, end - 2, 10)) == Bytes("\0!", 2));
  CHECK(Must(f.view().Read(opened.handle, end / 2, 4)) == Bytes(4, '\0'));
  CHECK(Must(f.view().Seek(opened.handle, 0, SEEK_HOLE)) == 0);
  CHECK(Must(f.view().Seek(opened.handle, 0, SEEK_DATA)) == end - cas::kChunkSize);
  CHECK(Must(f.view().Seek(opened.handle, end - 1, SEEK_HOLE)) == end);
}

TEST_CASE("SEEK_DATA and SEEK_HOLE see uncommitted data and holes, and ENXIO past the end") {
  VfsFixture f;
  const uint64_t chunk = cas::kChunkSize;
  const View::Created created = f.Create("f");
  const HandleId handle = created.opened.handle;
  f.Write(handle, 0, Bytes(4 * chunk, 'd'));
  Must(f.view().Allocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, chunk, chunk, kUser));
  const auto check = [&] {
    CHECK(Must(f.view().Seek(handle, 5, SEEK_DATA)) == 5);
    CHECK(Must(f.view().Seek(handle, 5, SEEK_HOLE)) == chunk);
    CHECK(Must(f.view().Seek(handle, chunk + 1, SEEK_HOLE)) == chunk + 1);
    CHECK(Must(f.view().Seek(handle, chunk + 1, SEEK_DATA)) == 2 * chunk);
    CHECK(Must(f.view().Seek(handle, 2 * chunk, SEEK_HOLE)) == 4 * chunk);
    CHECK(f.view().Seek(handle, 4 * chunk, SEEK_DATA).code() == Code::kNoDevice);
    CHECK(f.view().Seek(handle, 4 * chunk, SEEK_HOLE).code() == Code::kNoDevice);
  };
  check();
  Must(f.view().Fsync(handle));
  check();
}

TEST_CASE("Fallocate extends, keeps the size, punches and zeroes as it does on Linux") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  const HandleId handle = created.opened.handle;
  const auto allocate = [&](int mode, uint64_t offset, uint64_t size) {
    return f.view().Allocate(handle, mode, offset, size, kUser);
  };
  f.Write(handle, 0, "0123456789");
  Must(allocate(0, 5, 10));
  CHECK(f.Contents(created.node.id) == "0123456789" + Bytes(5, '\0'));
  Must(allocate(FALLOC_FL_KEEP_SIZE, 0, 1000));
  CHECK(Must(f.view().GetAttributes(created.node.id)).size == 15);
  Must(allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
  Must(allocate(FALLOC_FL_ZERO_RANGE, 8, 10));
  CHECK(f.Contents(created.node.id) == Bytes("01\0\0\0"
                                             "567",
                                             8) +
                                           Bytes(10, '\0'));
  CHECK(allocate(FALLOC_FL_COLLAPSE_RANGE, 0, 1).code() == Code::kNotSupported);
  CHECK(allocate(FALLOC_FL_PUNCH_HOLE, 0, 1).code() == Code::kNotSupported);
  CHECK(allocate(0, 0, 0).code() == Code::kInvalidArgument);
  CHECK(allocate(0, uint64_t{1} << 52, 1).code() == Code::kTooLarge);
}

TEST_CASE("Writes beyond the greatest size are EFBIG") {
  VfsFixture f;
  const View::Created created = f.Create("f");
  const Result<size_t> result =
      f.view().Write(created.opened.handle, uint64_t{1} << 52, "x", false, kUser);
  CHECK(result.status().ToErrno() == EFBIG);
}

TEST_CASE("A copied range is the bytes of its source") {
  VfsFixture f;
  std::mt19937 random(2);
  const Bytes content = RandomText(random, 700'000);
  const NodeId from = f.Put("from", content);
  const Opened source = Must(f.view().Open(from, O_RDONLY, kUser));
  const View::Created target = f.Create("to");
  CHECK(Must(f.view().CopyRange(source.handle, 100, target.opened.handle, 5, 1'000'000, kUser)) ==
        content.size() - 100);
  f.Close(target.opened.handle);
  CHECK(f.ContentsOf("to") == Bytes(5, '\0') + content.substr(100));
}

TEST_CASE("Two views see each other's uncommitted bytes and sizes at once") {
  VfsFixture f;
  const auto other = f.OpenView({"ada", false});
  const View::Created created = f.Create("f");
  f.Write(created.opened.handle, 0, "draft");
  CHECK(Must(other->Lookup(f.memory(), "f")).size == 5);
  CHECK(VfsFixture::ContentsIn(*other, created.node.id) == "draft");
}

TEST_CASE("An unlinked file stays readable and writable for its handles and is never recorded") {
  VfsFixture f;
  const bool committed = GENERATE(false, true);
  View::Created created = f.Create("f");
  const HandleId handle = created.opened.handle;
  f.Write(handle, 0, "abc");
  if (committed) Must(f.view().Fsync(handle));
  Must(f.view().Unlink(f.memory(), "f", kUser));
  const size_t records = f.Records().size();
  f.Write(handle, 3, "def");
  CHECK(Must(f.view().Read(handle, 0, 100)) == "abcdef");
  AttributeChange change;
  change.size = 4;
  change.mode = 0600;
  Must(f.view().SetAttributes(created.node.id, change, handle, kUser));
  const Node node = Must(f.view().GetAttributes(created.node.id));
  CHECK(node.nlink == 0);
  CHECK(node.size == 4);
  CHECK((node.attributes.mode & 07777) == 0600);
  Must(f.view().Fsync(handle));
  f.Close(handle);
  CHECK(f.Records().size() == records);
  CHECK(f.view().Lookup(f.memory(), "f").code() == Code::kNotFound);
}

TEST_CASE("A replaced file keeps its content for open handles and is not committed any more") {
  VfsFixture f;
  const NodeId old = f.Put("f", "old");
  const Opened opened = Must(f.view().Open(old, O_RDWR, kUser));
  f.Write(opened.handle, 0, "OLD");
  f.Put("f.new", "new");
  Must(f.view().Rename(f.memory(), "f.new", f.memory(), "f", volume::RenameMode::kReplace, kUser));
  const size_t records = f.Records().size();
  CHECK(Must(f.view().Read(opened.handle, 0, 10)) == "OLD");
  CHECK(f.ContentsOf("f") == "new");
  // As when a look-up raced with the rename.
  CHECK(f.Contents(old) == "OLD");
  f.Close(opened.handle);
  CHECK(f.Records().size() == records);
}

}  // namespace
}  // namespace memoirfs::vfs
