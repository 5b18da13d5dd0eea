#include "fs/vfs/content_builder.h"

#include "store/cas/chunk_tree.h"

namespace memoirfs::vfs {
namespace {

using cas::kChunkSize;
using Kind = ChangedChunk::Kind;
using volume::NewObject;

class ContentBuilder {
 public:
  ContentBuilder(volume::Volume& volume, BufferSnapshot& snapshot)
      : volume_(volume), snapshot_(snapshot), content_(snapshot.content) {}

  Result<BuiltContent> Build() {
    if (content_.size == 0) return BuiltContent{EmptyContent(), {}};
    ContentId id;
    if (content_.size <= kChunkSize) {
      ASSIGN_OR_RETURN(id, BuildFlat());
    } else {
      ASSIGN_OR_RETURN(id, BuildTree());
    }
    return BuiltContent{id, std::move(objects_)};
  }

 private:
  Result<ContentId> BuildFlat() {
    ASSIGN_OR_RETURN(Buffer bytes, WholeChunk(0));
    const Digest digest = Sha256::Of(*bytes);
    std::optional<Digest> before;
    if (content_.base.kind == ContentKind::kFlat) before = content_.base.digest;
    TRY(AddChunk(0, digest, std::move(bytes), before));
    return ContentId{digest, content_.size, ContentKind::kFlat};
  }

  Result<ContentId> BuildTree() {
    ASSIGN_OR_RETURN(cas::ChunkTree tree, BaseTree());
    for (const auto& [index, chunk] : content_.chunks) {
      if (chunk.kind == Kind::kBytes) {
        TRY(PutChunk(tree, index));
      } else if (chunk.kind == Kind::kStored) {
        TRY(tree.SetChunk(index, chunk.digest));
      } else {
        TRY(tree.SetChunk(index, std::nullopt));
      }
    }
    if (const auto boundary = BoundaryChunk()) TRY(PutChunk(tree, *boundary));
    return tree.Seal(content_.size, [this](const Digest& digest, Buffer bytes) {
      return Add(NewObject{digest, std::move(bytes), std::nullopt, 0});
    });
  }

  // The visible chunks of the base, as they are there.
  Result<cas::ChunkTree> BaseTree() {
    cas::ObjectStore& objects = volume_.objects();
    if (content_.base.kind == ContentKind::kTree) {
      cas::ChunkTree tree(objects, content_.base);
      TRY(tree.Truncate(cas::ChunkCount(content_.base_visible)));
      return tree;
    }
    cas::ChunkTree tree(objects);
    // A flat object is the same object as a chunk.
    if (content_.base_visible > 0) TRY(tree.SetChunk(0, content_.base.digest));
    return tree;
  }

  // The chunk in which the visible part of the base ends, when it holds other bytes now than in
  // the base (cut off, or more zeros) and was not changed otherwise.
  std::optional<uint64_t> BoundaryChunk() const {
    const uint64_t index = content_.base_visible / kChunkSize;
    if (content_.base_visible % kChunkSize == 0 || content_.chunks.count(index) != 0) return {};
    const uint64_t start = index * kChunkSize;
    const uint64_t length_in_base = cas::ChunkLength(content_.base.size, index);
    const bool same = content_.base_visible - start == length_in_base &&
                      content_.ChunkLength(index) == length_in_base;
    return same ? std::optional<uint64_t>() : index;
  }

  Status PutChunk(cas::ChunkTree& tree, uint64_t index) {
    ASSIGN_OR_RETURN(Buffer bytes, WholeChunk(index));
    if (cas::IsAllZeros(*bytes)) return tree.SetChunk(index, std::nullopt);
    const Digest digest = Sha256::Of(*bytes);
    ASSIGN_OR_RETURN(const std::optional<Digest> before, tree.Chunk(index));
    if (before == digest) return {};
    TRY(AddChunk(index, digest, std::move(bytes), before));
    return tree.SetChunk(index, digest);
  }

  // All bytes of a chunk; those in memory are shared and not copied where they are complete.
  Result<Buffer> WholeChunk(uint64_t index) {
    const uint64_t length = content_.ChunkLength(index);
    const auto changed = content_.chunks.find(index);
    if (changed != content_.chunks.end() && changed->second.kind == Kind::kBytes &&
        changed->second.bytes->size() == length) {
      return Buffer(changed->second.bytes);
    }
    ASSIGN_OR_RETURN(Bytes bytes, content_.ReadChunk(volume_.objects(), index, 0, length));
    return Buffer(std::make_shared<const Bytes>(std::move(bytes)));
  }

  // `before` is what the chunk was in the base: where the new bytes only follow those, the commit
  // need not write them again.
  Status AddChunk(uint64_t index, const Digest& digest, Buffer bytes,
                  const std::optional<Digest>& before) {
    NewObject object{digest, std::move(bytes), std::nullopt, 0};
    const uint64_t start = index * kChunkSize;
    const uint64_t base_size = content_.base.size;
    const bool appended = content_.first_change >= base_size && base_size > start &&
                          base_size - start < object.bytes->size();
    if (before && appended) {
      object.base = before;
      object.suffix_offset = base_size - start;
    }
    return Add(std::move(object));
  }

  Status Add(NewObject object) {
    total_ += object.bytes->size();
    objects_.push_back(std::move(object));
    return total_ > volume::Volume::kMaxCommitBytes ? MoveToSession() : Status();
  }

  Status MoveToSession() {
    if (snapshot_.sessions.empty()) {
      ASSIGN_OR_RETURN(auto session, volume_.StartChunkSession());
      snapshot_.sessions.push_back(std::move(session));
    }
    for (const NewObject& object : objects_) {
      TRY(snapshot_.sessions.back()->Store(object.digest, object.bytes));
    }
    objects_.clear();
    total_ = 0;
    return {};
  }

  volume::Volume& volume_;
  BufferSnapshot& snapshot_;
  const BufferContent& content_;
  std::vector<NewObject> objects_;
  uint64_t total_ = 0;
};

}  // namespace

Result<BuiltContent> BuildContent(volume::Volume& volume, BufferSnapshot& snapshot) {
  return ContentBuilder(volume, snapshot).Build();
}

}  // namespace memoirfs::vfs
