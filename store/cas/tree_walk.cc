#include <unordered_set>

#include "store/cas/chunk_tree.h"
#include "store/cas/tree_node.h"

namespace memoirfs::cas {
namespace {

class TreeWalk {
 public:
  TreeWalk(ObjectStore& objects, const ContentId& id, const ChunkTree::Visit& visit)
      : objects_(objects), size_(id.size), chunks_(ChunkCount(id.size)), visit_(visit) {}

  Status VisitNode(const Digest& digest, unsigned level, uint64_t first, bool is_root) {
    // Only the node with the last chunk can differ from an equal one in what its chunks' lengths
    // must be; without this, a few nodes that repeat could keep a walk busy for ever.
    const bool has_last_chunk = chunks_ - first <= CapacityOf(level);
    if (!has_last_chunk && !seen_.insert(digest).second) return {};
    TRY(visit_(digest, true, 0));
    auto node = LoadTreeNode(objects_, digest, level, MaxDigests(level, first, chunks_), is_root);
    if (!node.ok()) {
      if (failure_.ok()) failure_ = node.status();
      return {};
    }
    const uint64_t span = SpanOf(level);
    for (size_t slot = 0; slot < node->digests.size(); ++slot) {
      const Digest& below = node->digests[slot];
      const uint64_t begin = first + slot * span;
      if (below.IsZero()) continue;
      TRY(level == 0 ? visit_(below, false, ChunkLength(size_, begin))
                     : VisitNode(below, level - 1, begin, false));
    }
    return {};
  }

  const Status& failure() const { return failure_; }

 private:
  ObjectStore& objects_;
  const uint64_t size_;
  const uint64_t chunks_;
  const ChunkTree::Visit& visit_;
  std::unordered_set<Digest> seen_;
  Status failure_;
};

}  // namespace

Status ChunkTree::ForEachObject(ObjectStore& objects, const ContentId& id, const Visit& visit) {
  if (id.kind == ContentKind::kFlat) {
    return id.size == 0 ? Status() : visit(id.digest, false, id.size);
  }
  TreeWalk walk(objects, id, visit);
  TRY(walk.VisitNode(id.digest, RootLevelOf(ChunkCount(id.size)), 0, true));
  return walk.failure();
}

}  // namespace memoirfs::cas
