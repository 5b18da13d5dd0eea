// One file against a model of it: a string.

#include "fs/vfs/file_buffer.h"

#include <linux/falloc.h>

#include <random>

#include "fs/vfs/content_builder.h"
#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

// Offsets and sizes near the borders of chunks and of flat content, where things differ.
class Positions {
 public:
  explicit Positions(unsigned seed) : random_(seed) {}

  uint64_t Below(uint64_t limit) { return random_() % limit; }
  uint64_t Offset() {
    const uint64_t chunk = Below(6) * cas::kChunkSize;
    const uint64_t near = Below(3) == 0 ? Below(cas::kChunkSize) : Below(5);
    return Below(2) == 0 || chunk < near ? chunk + near : chunk - near;
  }
  Bytes Data() {
    const uint64_t size = Below(4) == 0 ? Below(3 * cas::kChunkSize) : Below(2000);
    return Bytes(size + 1, Below(5) == 0 ? '\0' : static_cast<char>('a' + Below(26)));
  }

 private:
  std::mt19937 random_;
};

class ModelledFile {
 public:
  explicit ModelledFile(VfsFixture& f, unsigned seed) : f_(f), positions_(seed) {
    const View::Created created = f.Create("f");
    node_ = created.node.id;
    handle_ = created.opened.handle;
  }

  void Step() {
    switch (positions_.Below(8)) {
      case 0:
      case 1:
        return Write();
      case 2:
        return Resize();
      case 3:
        return Zero();
      case 4:
        return Must(f_.view().Flush(handle_));
      case 5:
        return Must(f_.view().Fsync(handle_));
      default:
        return Read();
    }
  }

  void CheckAll() {
    CHECK(Must(f_.view().GetAttributes(node_)).size == model_.size());
    CHECK((f_.Contents(node_) == model_));
  }

 private:
  void Write() {
    const uint64_t offset = positions_.Offset();
    const Bytes data = positions_.Data();
    f_.Write(handle_, offset, data);
    if (model_.size() < offset + data.size()) model_.resize(offset + data.size());
    model_.replace(offset, data.size(), data);
  }

  void Resize() {
    AttributeChange change;
    change.size = positions_.Offset();
    const bool through_handle = positions_.Below(2) == 0;
    Must(f_.view().SetAttributes(node_, change,
                                 through_handle ? std::optional(handle_) : std::nullopt, kUser));
    model_.resize(*change.size);
  }

  void Zero() {
    const uint64_t offset = positions_.Offset();
    const uint64_t size = positions_.Offset() + 1;
    Must(f_.view().Allocate(handle_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size,
                            kUser));
    if (offset >= model_.size()) return;
    const uint64_t count = std::min(size, model_.size() - offset);
    model_.replace(offset, count, count, '\0');
  }

  void Read() {
    const uint64_t offset = positions_.Offset();
    const uint64_t size = positions_.Below(2 * cas::kChunkSize);
    const Bytes expected = offset < model_.size() ? model_.substr(offset, size) : Bytes();
    CHECK((Must(f_.view().Read(handle_, offset, size)) == expected));
  }

  VfsFixture& f_;
  Positions positions_;
  NodeId node_;
  HandleId handle_;
  Bytes model_;
};

TEST_CASE("A file behaves as a string does under writes, truncations, holes and commits") {
  const unsigned seed = GENERATE(1U, 2U, 3U, 4U);
  INFO("seed " << seed);
  VfsFixture f;
  ModelledFile file(f, seed);
  for (int step = 0; step < 500; ++step) {
    INFO("step " << step);
    file.Step();
    if (step % 20 == 0) file.CheckAll();
  }
  file.CheckAll();
}

struct BufferFixture : VfsFixture {
  DirtyBudget budget;
  // What a commit does, without the record.
  ContentId Store(BufferSnapshot& snapshot) {
    const BuiltContent built = Must(BuildContent(volume(), snapshot));
    for (const auto& object : built.objects)
      volume().objects().Remember(object.digest, object.bytes);
    return built.id;
  }
};

TEST_CASE("What is written during a commit is neither lost nor part of it") {
  BufferFixture f;
  FileBuffer buffer(f.volume(), f.budget, EmptyContent());
  Must(buffer.Write(0, Bytes(600'000, 'a')));
  BufferSnapshot snapshot = buffer.TakeSnapshot();
  Must(buffer.Write(300'000, "later"));
  Must(buffer.Resize(400'000));
  Must(buffer.Resize(500'000));
  const ContentId id = f.Store(snapshot);
  CHECK((Must(cas::ReadContent(f.volume().objects(), id, 0, 700'000)) == Bytes(600'000, 'a')));
  buffer.Rebase(snapshot, id);
  Bytes expected = Bytes(400'000, 'a') + Bytes(100'000, '\0');
  expected.replace(300'000, 5, "later");
  CHECK((Must(buffer.Read(0, 700'000)) == expected));
  CHECK(buffer.dirty());
}

TEST_CASE("A failed commit loses nothing, and the next one stores everything") {
  BufferFixture f;
  FileBuffer buffer(f.volume(), f.budget, EmptyContent());
  Must(buffer.Write(0, Bytes(300'000, 'a')));
  BufferSnapshot snapshot = buffer.TakeSnapshot();
  Must(buffer.Write(10, "later"));
  buffer.PutBack(std::move(snapshot));
  BufferSnapshot again = buffer.TakeSnapshot();
  const ContentId id = f.Store(again);
  buffer.Rebase(again, id);
  CHECK_FALSE(buffer.dirty());
  CHECK(f.budget.used() == 0);
  Bytes expected(300'000, 'a');
  expected.replace(10, 5, "later");
  CHECK((Must(buffer.Read(0, 300'000)) == expected));
}

TEST_CASE("Equal bytes have equal ids, whatever way they came about") {
  BufferFixture f;
  FileBuffer once(f.volume(), f.budget, EmptyContent());
  Must(once.Write(0, Bytes(700'000, 'x')));
  BufferSnapshot a = once.TakeSnapshot();
  const ContentId expected = f.Store(a);

  FileBuffer pieces(f.volume(), f.budget, EmptyContent());
  Must(pieces.Write(0, Bytes(200'000, 'x')));
  BufferSnapshot first = pieces.TakeSnapshot();
  pieces.Rebase(first, f.Store(first));
  Must(pieces.Write(200'000, Bytes(800'000, 'x')));
  BufferSnapshot second = pieces.TakeSnapshot();
  pieces.Rebase(second, f.Store(second));
  Must(pieces.Resize(700'000));
  BufferSnapshot third = pieces.TakeSnapshot();
  CHECK((f.Store(third) == expected));
}

TEST_CASE("Zeroing a range whose end does not verify fails and changes nothing") {
  BufferFixture f;
  // Four chunks, of which the last one is not there.
  FileBuffer source(f.volume(), f.budget, EmptyContent());
  for (int i = 0; i < 4; ++i) {
    Must(source.Write(i * cas::kChunkSize, Bytes(cas::kChunkSize, static_cast<char>('a' + i))));
  }
  BufferSnapshot snapshot = source.TakeSnapshot();
  const BuiltContent built = Must(BuildContent(f.volume(), snapshot));
  const Digest lost = Sha256::Of(Bytes(cas::kChunkSize, 'd'));
  for (const auto& object : built.objects) {
    if (object.digest != lost) f.volume().objects().Remember(object.digest, object.bytes);
  }
  FileBuffer buffer(f.volume(), f.budget, built.id);
  const uint64_t used = f.budget.used();
  CHECK(buffer.Zero(100, 3 * cas::kChunkSize + 100).code() == Code::kCorrupt);
  CHECK_FALSE(buffer.dirty());
  CHECK(f.budget.used() == used);
  CHECK((Must(buffer.Read(0, 3 * cas::kChunkSize)) == Must(source.Read(0, 3 * cas::kChunkSize))));
  // Up to where it verifies it works.
  Must(buffer.Zero(100, 3 * cas::kChunkSize - 100));
  CHECK((Must(buffer.Read(0, 3 * cas::kChunkSize)) ==
         Bytes(100, 'a') + Bytes(3 * cas::kChunkSize - 100, '\0')));
}

TEST_CASE("A write into a chunk that does not verify fails and changes nothing") {
  BufferFixture f;
  const ContentId missing{Sha256::Of("not stored"), 10, ContentKind::kFlat};
  FileBuffer buffer(f.volume(), f.budget, missing);
  CHECK(buffer.Write(3, "abc").code() == Code::kCorrupt);
  CHECK_FALSE(buffer.dirty());
  CHECK(f.budget.used() == 0);
  Must(buffer.Write(0, "all of it!"));
  CHECK(Must(buffer.Read(0, 100)) == "all of it!");
}

}  // namespace
}  // namespace memoirfs::vfs
