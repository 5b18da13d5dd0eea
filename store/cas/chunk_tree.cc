#include "store/cas/chunk_tree.h"

#include <map>
#include <utility>
#include <vector>

#include "store/cas/tree_node.h"

// Nodes are loaded when a path leads through them. A node that changed, and every node above it,
// stays in memory until it was emitted and taken as stored; of the others only the last path is
// kept (the object store's cache holds the bytes), so that walking through a huge file needs
// little memory.

namespace memoirfs::cas {
namespace {

enum class State {
  kSaved,    // as an object in the store
  kSealed,   // emitted by the last Seal, which may still turn out to be lost
  kChanged,  // to be emitted
};

struct Node {
  TreeNode body;  // the digest of a child that is kChanged is out of date
  State state = State::kChanged;
  std::map<size_t, std::unique_ptr<Node>> children;  // those in memory; never empty ones

  bool IsHole(size_t slot) const {
    return slot >= body.digests.size() ||
           (body.digests[slot].IsZero() && children.find(slot) == children.end());
  }
  bool IsEmpty() const { return body.digests.empty(); }

  Digest& DigestAt(size_t slot) {
    if (slot >= body.digests.size()) body.digests.resize(slot + 1);
    return body.digests[slot];
  }

  void MakeHole(size_t slot) {
    children.erase(slot);
    body.digests[slot] = Digest();
    TrimHoles();
    state = State::kChanged;
  }

  // Drops every slot from `count` on.
  void KeepSlots(size_t count) {
    if (body.digests.size() <= count) return;
    body.digests.resize(count);
    children.erase(children.lower_bound(count), children.end());
    TrimHoles();
    state = State::kChanged;
  }

  // What a change of the child means for this node.
  void TakeOver(size_t slot) {
    const Node& child = *children.at(slot);
    if (child.IsEmpty()) {
      MakeHole(slot);
    } else if (child.state == State::kChanged) {
      state = State::kChanged;
    }
  }

  void TrimHoles() {
    while (!IsEmpty() && IsHole(body.digests.size() - 1)) body.digests.pop_back();
  }
};

std::unique_ptr<Node> NewNode(unsigned level) {
  auto node = std::make_unique<Node>();
  node->body.level = level;
  return node;
}

// Turns every node in state `from` into state `to`. A saved node has only saved ones below it.
void ChangeState(Node& node, State from, State to) {
  if (node.state == State::kSaved) return;
  if (node.state == from) node.state = to;
  for (auto& [slot, child] : node.children) ChangeState(*child, from, to);
}

Result<Digest> SealNode(Node& node, const EmitObject& emit) {
  for (auto& [slot, child] : node.children) {
    if (child->state != State::kChanged) continue;
    ASSIGN_OR_RETURN(node.body.digests[slot], SealNode(*child, emit));
  }
  auto bytes = std::make_shared<const Bytes>(node.body.Encode());
  const Digest digest = Sha256::Of(*bytes);
  TRY(emit(digest, std::move(bytes)));
  node.state = State::kSealed;
  return digest;
}

}  // namespace

class ChunkTree::Impl {
 public:
  explicit Impl(ObjectStore& objects) : objects_(objects), root_(NewNode(0)) {}
  Impl(ObjectStore& objects, const ContentId& id)
      : objects_(objects),
        saved_chunks_(ChunkCount(id.size)),
        end_(saved_chunks_),
        root_level_(RootLevelOf(saved_chunks_)),
        root_digest_(id.digest) {}

  Result<std::optional<Digest>> Chunk(uint64_t index);
  Status SetChunk(uint64_t index, const Digest& digest);
  Status ClearChunk(uint64_t index);
  Status Truncate(uint64_t count);
  Result<std::optional<uint64_t>> NextChunk(uint64_t from, uint64_t limit, bool hole);
  Result<ContentId> Seal(uint64_t size, const EmitObject& emit);

 private:
  // `first` is always the number of the first chunk under the node.
  Result<std::unique_ptr<Node>> Load(const Digest& digest, unsigned level, uint64_t first,
                                     bool is_root);
  Result<Node*> Root();
  Result<Node*> Child(Node& node, size_t slot, uint64_t first);

  Status Put(Node& node, uint64_t first, uint64_t index, const Digest& digest);
  Status Clear(Node& node, uint64_t first, uint64_t index);
  Status Cut(Node& node, uint64_t first, uint64_t count);
  Result<std::optional<uint64_t>> Find(Node& node, uint64_t first, uint64_t from, uint64_t limit,
                                       bool hole);
  Status GrowTo(unsigned level);
  Status ShrinkTo(unsigned level);

  ObjectStore& objects_;
  uint64_t saved_chunks_ = 0;  // of the content whose nodes are in the store
  uint64_t end_ = 0;           // no chunk lies at or behind it
  unsigned root_level_ = 0;
  Digest root_digest_;          // out of date when the root is kChanged
  std::unique_ptr<Node> root_;  // null: not loaded yet
};

Result<std::unique_ptr<Node>> ChunkTree::Impl::Load(const Digest& digest, unsigned level,
                                                    uint64_t first, bool is_root) {
  const uint64_t max_digests = MaxDigests(level, first, saved_chunks_);
  auto node = std::make_unique<Node>();
  ASSIGN_OR_RETURN(node->body, LoadTreeNode(objects_, digest, level, max_digests, is_root));
  node->state = State::kSaved;
  return node;
}

Result<Node*> ChunkTree::Impl::Root() {
  if (root_ == nullptr) {
    ASSIGN_OR_RETURN(root_, Load(root_digest_, root_level_, 0, true));
  }
  return root_.get();
}

// Precondition: the slot is no hole.
Result<Node*> ChunkTree::Impl::Child(Node& node, size_t slot, uint64_t first) {
  const auto known = node.children.find(slot);
  if (known != node.children.end()) return known->second.get();
  ASSIGN_OR_RETURN(auto child, Load(node.body.digests[slot], node.body.level - 1, first, false));
  std::erase_if(node.children,
                [](const auto& entry) { return entry.second->state == State::kSaved; });
  return (node.children[slot] = std::move(child)).get();
}

Result<std::optional<Digest>> ChunkTree::Impl::Chunk(uint64_t index) {
  if (index >= CapacityOf(root_level_)) return std::optional<Digest>();
  ASSIGN_OR_RETURN(Node * node, Root());
  uint64_t first = 0;
  for (;;) {
    const uint64_t span = SpanOf(node->body.level);
    const size_t slot = (index - first) / span;
    if (node->IsHole(slot)) return std::optional<Digest>();
    if (node->body.level == 0) return std::optional<Digest>(node->body.digests[slot]);
    first += slot * span;
    ASSIGN_OR_RETURN(node, Child(*node, slot, first));
  }
}

Status ChunkTree::Impl::SetChunk(uint64_t index, const Digest& digest) {
  if (digest.IsZero()) {
    return Status(Code::kInvalidArgument, "chunk tree: a digest of zeros stands for a hole");
  }
  if (index >= CapacityOf(TreeNode::kMaxLevel)) {
    return Status(Code::kTooLarge, "chunk tree: chunk " + std::to_string(index));
  }
  TRY(GrowTo(RootLevelOf(index + 1)));
  ASSIGN_OR_RETURN(Node* const root, Root());
  TRY(Put(*root, 0, index, digest));
  end_ = std::max(end_, index + 1);
  return {};
}

Status ChunkTree::Impl::Put(Node& node, uint64_t first, uint64_t index, const Digest& digest) {
  const uint64_t span = SpanOf(node.body.level);
  const size_t slot = (index - first) / span;
  if (node.body.level == 0) {
    if (!node.IsHole(slot) && node.body.digests[slot] == digest) return {};
    node.DigestAt(slot) = digest;
    node.state = State::kChanged;
    return {};
  }
  first += slot * span;
  if (node.IsHole(slot)) {
    node.DigestAt(slot) = Digest();
    node.children[slot] = NewNode(node.body.level - 1);
  }
  ASSIGN_OR_RETURN(Node* const child, Child(node, slot, first));
  TRY(Put(*child, first, index, digest));
  node.TakeOver(slot);
  return {};
}

Status ChunkTree::Impl::ClearChunk(uint64_t index) {
  if (index >= CapacityOf(root_level_)) return {};
  ASSIGN_OR_RETURN(Node* const root, Root());
  return Clear(*root, 0, index);
}

Status ChunkTree::Impl::Clear(Node& node, uint64_t first, uint64_t index) {
  const uint64_t span = SpanOf(node.body.level);
  const size_t slot = (index - first) / span;
  if (node.IsHole(slot)) return {};
  if (node.body.level == 0) {
    node.MakeHole(slot);
    return {};
  }
  first += slot * span;
  ASSIGN_OR_RETURN(Node* const child, Child(node, slot, first));
  TRY(Clear(*child, first, index));
  node.TakeOver(slot);
  return {};
}

Status ChunkTree::Impl::Truncate(uint64_t count) {
  if (count >= end_) return {};
  ASSIGN_OR_RETURN(Node* const root, Root());
  TRY(Cut(*root, 0, count));
  end_ = count;
  return {};
}

// Changes nothing before the last node on the edge is loaded, so that a failure leaves the tree as
// it was.
Status ChunkTree::Impl::Cut(Node& node, uint64_t first, uint64_t count) {
  const uint64_t span = SpanOf(node.body.level);
  const uint64_t kept = count - first;
  const size_t whole_slots = kept / span;
  const bool is_split = kept % span != 0;
  if (is_split && !node.IsHole(whole_slots)) {
    const uint64_t child_first = first + whole_slots * span;
    ASSIGN_OR_RETURN(Node* const child, Child(node, whole_slots, child_first));
    TRY(Cut(*child, child_first, count));
    node.TakeOver(whole_slots);
  }
  node.KeepSlots(whole_slots + (is_split ? 1 : 0));
  return {};
}

Result<std::optional<uint64_t>> ChunkTree::Impl::NextChunk(uint64_t from, uint64_t limit,
                                                           bool hole) {
  std::optional<uint64_t> found;
  if (from < std::min(limit, CapacityOf(root_level_))) {
    ASSIGN_OR_RETURN(Node* const root, Root());
    ASSIGN_OR_RETURN(found, Find(*root, 0, from, limit, hole));
  }
  if (!found && hole) found = std::max(from, CapacityOf(root_level_));
  return found && *found < limit ? found : std::nullopt;
}

Result<std::optional<uint64_t>> ChunkTree::Impl::Find(Node& node, uint64_t first, uint64_t from,
                                                      uint64_t limit, bool hole) {
  const uint64_t span = SpanOf(node.body.level);
  for (size_t slot = from <= first ? 0 : (from - first) / span; slot < TreeNode::kFanOut; ++slot) {
    const uint64_t begin = first + slot * span;
    if (begin >= limit) break;
    if (node.IsHole(slot)) {
      if (hole) return std::optional<uint64_t>(std::max(begin, from));
      if (slot >= node.body.digests.size()) break;
      continue;
    }
    if (node.body.level == 0) {
      if (!hole) return std::optional<uint64_t>(begin);
      continue;
    }
    ASSIGN_OR_RETURN(Node* const child, Child(node, slot, begin));
    ASSIGN_OR_RETURN(const std::optional<uint64_t> found, Find(*child, begin, from, limit, hole));
    if (found) return found;
  }
  return std::optional<uint64_t>();
}

Status ChunkTree::Impl::GrowTo(unsigned level) {
  while (root_level_ < level) {
    ASSIGN_OR_RETURN(Node* const root, Root());
    ++root_level_;
    if (root->IsEmpty()) {
      root->body.level = root_level_;
      root->state = State::kChanged;
      continue;
    }
    auto parent = NewNode(root_level_);
    parent->body.digests.push_back(root_digest_);
    parent->children[0] = std::move(root_);
    root_ = std::move(parent);
  }
  return {};
}

// Precondition: what does not fit the lower root was cut off.
Status ChunkTree::Impl::ShrinkTo(unsigned level) {
  while (root_level_ > level) {
    ASSIGN_OR_RETURN(Node* const root, Root());
    if (root->IsEmpty()) {
      root->body.level = root_level_ - 1;
      root->state = State::kChanged;
    } else {
      TRY(Child(*root, 0, 0));
      root_digest_ = root->body.digests[0];
      root_ = std::move(root->children.at(0));
    }
    --root_level_;
  }
  return {};
}

Result<ContentId> ChunkTree::Impl::Seal(uint64_t size, const EmitObject& emit) {
  if (size <= kChunkSize) {
    return Status(Code::kInvalidArgument,
                  "chunk tree: content of " + std::to_string(size) + " bytes is flat");
  }
  const uint64_t chunks = ChunkCount(size);
  TRY(Truncate(chunks));
  TRY(GrowTo(RootLevelOf(chunks)));
  TRY(ShrinkTo(RootLevelOf(chunks)));
  if (root_ != nullptr) {
    ChangeState(*root_, State::kSealed, State::kSaved);
    if (root_->state == State::kChanged) {
      auto digest = SealNode(*root_, emit);
      if (!digest.ok()) ChangeState(*root_, State::kSealed, State::kChanged);
      ASSIGN_OR_RETURN(root_digest_, std::move(digest));
    }
  }
  saved_chunks_ = chunks;
  return ContentId{root_digest_, size, ContentKind::kTree};
}

ChunkTree::ChunkTree(ObjectStore& objects) : impl_(std::make_unique<Impl>(objects)) {}
ChunkTree::ChunkTree(ObjectStore& objects, const ContentId& id)
    : impl_(std::make_unique<Impl>(objects, id)) {}
ChunkTree::~ChunkTree() = default;
ChunkTree::ChunkTree(ChunkTree&&) noexcept = default;
ChunkTree& ChunkTree::operator=(ChunkTree&&) noexcept = default;

Result<std::optional<Digest>> ChunkTree::Chunk(uint64_t index) { return impl_->Chunk(index); }
Status ChunkTree::SetChunk(uint64_t index, const std::optional<Digest>& digest) {
  return digest ? impl_->SetChunk(index, *digest) : impl_->ClearChunk(index);
}
Status ChunkTree::Truncate(uint64_t count) { return impl_->Truncate(count); }
Result<std::optional<uint64_t>> ChunkTree::NextChunk(uint64_t from, uint64_t limit, bool hole) {
  return impl_->NextChunk(from, limit, hole);
}
Result<ContentId> ChunkTree::Seal(uint64_t size, const EmitObject& emit) {
  return impl_->Seal(size, emit);
}

}  // namespace memoirfs::cas
