#include "tests/crash/volume_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "store/base/log.h"
#include "store/cas/chunk_tree.h"
#include "tests/support/temp_directory.h"

namespace memoirfs::testing {

using volume::Inode;
using volume::NewNode;
using volume::NewObject;
using volume::RenameMode;
using volume::Volume;

namespace {

const chain::Actor kActor{1000, 1000, 42, "test"};
const NewNode kFile{S_IFREG | 0644, 1000, 1000, 0};
const NewNode kDirectory{S_IFDIR | 0755, 1000, 1000, 0};
const NewNode kSymlink{S_IFLNK | 0777, 1000, 1000, 0};

Buffer MakeBuffer(Bytes bytes) { return std::make_shared<const Bytes>(std::move(bytes)); }

ContentId FlatId(const Bytes& text) {
  return text.empty() ? EmptyContent()
                      : ContentId{Sha256::Of(text), text.size(), ContentKind::kFlat};
}

std::string Show(const ContentId& content) {
  return fmt::format("{} bytes {}", content.size, content.digest.ToHex().substr(0, 12));
}

}  // namespace

void LogNowhere() {
  static const bool logs = [] {
    const test::TempDirectory directory;
    return LogToFile(directory / "log").ok();
  }();
  REQUIRE(logs);
}

std::string FirstDifference(const Tree& expected, const Tree& found) {
  for (const auto& [path, what] : expected) {
    const auto other = found.find(path);
    if (other == found.end()) return fmt::format("{} is missing; it was: {}", path, what);
    if (other->second != what) return fmt::format("{}: {}, not {}", path, other->second, what);
  }
  for (const auto& [path, what] : found) {
    if (expected.count(path) == 0) return fmt::format("{} should not be there: {}", path, what);
  }
  return "";
}

volume::VolumeOptions CrashOptions() {
  volume::VolumeOptions options;
  options.journal.file_size = 256 << 10;
  options.journal.reserve = 32 << 10;
  options.segments.roll_bytes = 8 << 10;
  options.background = false;
  return options;
}

Status LivingStore::Open() {
  ASSIGN_OR_RETURN(volume_, Volume::Open(io_, clock_, options_));
  truncations_.clear();
  return {};
}

// --- changes

Result<LivingStore::Place> LivingStore::Resolve(const std::string& path) {
  size_t slash = path.find('/');
  ASSIGN_OR_RETURN(const auto agent, volume_->FindAgent(path.substr(0, slash)));
  Place place{agent.stream, kRootInode, ""};
  for (;;) {
    const size_t begin = slash + 1;
    slash = path.find('/', begin);
    place.name = path.substr(begin, slash == std::string::npos ? slash : slash - begin);
    if (slash == std::string::npos) return place;
    ASSIGN_OR_RETURN(const auto entry, volume_->Lookup(place.stream, place.parent, place.name));
    place.parent = entry.ino;
  }
}

Result<Inode> LivingStore::Find(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  ASSIGN_OR_RETURN(const auto entry, volume_->Lookup(place.stream, place.parent, place.name));
  return volume_->GetInode(place.stream, entry.ino);
}

Status LivingStore::AddAgent(const std::string& agent) {
  return status_internal::AsStatus(volume_->AddAgent(agent, 1000, 1000));
}

Status LivingStore::Create(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  return status_internal::AsStatus(
      volume_->Create(place.stream, place.parent, place.name, kFile, kActor));
}

Status LivingStore::CommitObjects(const std::string& path, const ContentId& content,
                                  const std::vector<NewObject>& objects) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  ASSIGN_OR_RETURN(const Inode inode, Find(path));
  TRY(volume_->CommitContent(place.stream, inode.id, content, objects, inode.attributes, kActor));
  truncations_.erase({place.stream, inode.id});
  return {};
}

Status LivingStore::Commit(const std::string& path, const Bytes& text) {
  std::vector<NewObject> objects;
  if (!text.empty()) objects.push_back({Sha256::Of(text), MakeBuffer(text), {}, 0});
  return CommitObjects(path, FlatId(text), objects);
}

Status LivingStore::Extend(const std::string& path, const Bytes& suffix) {
  ASSIGN_OR_RETURN(const Inode inode, Find(path));
  ASSIGN_OR_RETURN(const Bytes before,
                   cas::ReadContent(volume_->objects(), inode.content, 0, inode.content.size));
  const Bytes text = before + suffix;
  const NewObject object{Sha256::Of(text), MakeBuffer(text), inode.content.digest, before.size()};
  return CommitObjects(path, FlatId(text), {object});
}

Status LivingStore::CommitTree(const std::string& path, const Bytes& text) {
  ASSIGN_OR_RETURN(const auto session, volume_->StartChunkSession());
  cas::ChunkTree tree(volume_->objects());
  for (uint64_t i = 0; i < cas::ChunkCount(text.size()); ++i) {
    const Buffer chunk =
        MakeBuffer(text.substr(i * cas::kChunkSize, cas::ChunkLength(text.size(), i)));
    const Digest digest = Sha256::Of(*chunk);
    TRY(session->Store(digest, chunk));
    TRY(tree.SetChunk(i, digest));
  }
  TRY(session->Finish());
  std::vector<NewObject> nodes;
  ASSIGN_OR_RETURN(const ContentId content,
                   tree.Seal(text.size(), [&](const Digest& digest, Buffer bytes) {
                     nodes.push_back({digest, std::move(bytes), {}, 0});
                     return Status();
                   }));
  return CommitObjects(path, content, nodes);
}

Status LivingStore::NoteTruncation(const std::string& path, uint64_t size) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  ASSIGN_OR_RETURN(const Inode inode, Find(path));
  TRY(volume_->NoteTruncation(place.stream, inode.id, size));
  truncations_[{place.stream, inode.id}] = size;
  return {};
}

Status LivingStore::MakeDirectory(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  return status_internal::AsStatus(
      volume_->MakeDirectory(place.stream, place.parent, place.name, kDirectory, kActor));
}

Status LivingStore::MakeSymlink(const std::string& path, const std::string& target) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  return status_internal::AsStatus(
      volume_->MakeSymlink(place.stream, place.parent, place.name, kSymlink, target, kActor));
}

Status LivingStore::MakeLink(const std::string& path, const std::string& new_path) {
  ASSIGN_OR_RETURN(const Inode inode, Find(path));
  ASSIGN_OR_RETURN(const Place to, Resolve(new_path));
  return status_internal::AsStatus(
      volume_->MakeLink(to.stream, inode.id, to.parent, to.name, kActor));
}

Status LivingStore::Unlink(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  return status_internal::AsStatus(volume_->Unlink(place.stream, place.parent, place.name, kActor));
}

Status LivingStore::RemoveDirectory(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  return volume_->RemoveDirectory(place.stream, place.parent, place.name, kActor);
}

Status LivingStore::Rename(const std::string& path, const std::string& new_path, RenameMode mode) {
  ASSIGN_OR_RETURN(const Place from, Resolve(path));
  ASSIGN_OR_RETURN(const Place to, Resolve(new_path));
  return status_internal::AsStatus(
      volume_->Rename(from.stream, from.parent, from.name, to.parent, to.name, mode, kActor));
}

Status LivingStore::SetXattr(const std::string& path, const std::string& name,
                             std::optional<Bytes> value) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  ASSIGN_OR_RETURN(const Inode inode, Find(path));
  return volume_->SetXattr(place.stream, inode.id, name, value, kActor);
}

Status LivingStore::SetMode(const std::string& path, uint32_t mode) {
  ASSIGN_OR_RETURN(const Place place, Resolve(path));
  ASSIGN_OR_RETURN(const Inode inode, Find(path));
  Attributes attributes = inode.attributes;
  attributes.mode = mode;
  attributes.atime += 7;
  return status_internal::AsStatus(
      volume_->SetAttributes(place.stream, inode.id, attributes, kActor));
}

// --- the tree

Result<ContentId> LivingStore::ContentOf(StreamId stream, const Inode& inode) {
  const auto noted = truncations_.find({stream, inode.id});
  if (noted == truncations_.end()) return inode.content;
  const auto drop = [](const Digest&, const Buffer&) { return Status(); };
  return cas::ResizeContent(volume_->objects(), inode.content, noted->second, drop);
}

Result<std::string> LivingStore::Describe(StreamId stream, const Inode& inode) {
  const Attributes& a = inode.attributes;
  std::string text = fmt::format("mode {:o}, nlink {}", a.mode, inode.nlink);
  // A directory's times follow its entries, and a truncation that is settled sets mtime.
  if (!a.IsDirectory()) text += fmt::format(", btime {}, atime {}", a.btime, a.atime);
  if (a.IsRegular()) {
    ASSIGN_OR_RETURN(const ContentId content, ContentOf(stream, inode));
    text += ", " + Show(content);
  }
  if (a.IsSymlink()) {
    ASSIGN_OR_RETURN(const std::string target, volume_->ReadLink(stream, inode.id));
    text += " -> " + target;
  }
  ASSIGN_OR_RETURN(const auto names, volume_->ListXattrs(stream, inode.id));
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const Bytes value, volume_->GetXattr(stream, inode.id, name));
    text += fmt::format(", {}={} bytes {}", name, value.size(),
                        Sha256::Of(value).ToHex().substr(0, 12));
  }
  return text;
}

Status LivingStore::ReadDirectory(StreamId stream, InodeId dir, const std::string& prefix,
                                  Tree& tree) {
  ASSIGN_OR_RETURN(const auto entries, volume_->List(stream, dir, Cookie(), 1000));
  for (const volume::Entry& entry : entries) {
    ASSIGN_OR_RETURN(const Inode inode, volume_->GetInode(stream, entry.ino));
    const std::string path = prefix + "/" + entry.name;
    ASSIGN_OR_RETURN(tree[path], Describe(stream, inode));
    if (inode.attributes.IsDirectory()) TRY(ReadDirectory(stream, inode.id, path, tree));
  }
  return {};
}

Result<Tree> LivingStore::ReadTree() {
  Tree tree;
  for (const volume::AgentFacts& agent : volume_->ListAgents()) {
    const std::string key = tree.count(agent.name) == 0 ? agent.name : agent.name + " (twice)";
    tree[key] = agent.removed ? "removed" : "there";
    TRY(ReadDirectory(agent.stream, kRootInode, key, tree));
  }
  return tree;
}

// --- the workload

namespace {

Bytes Text(size_t size, char seed) {
  Bytes text(size, seed);
  for (size_t i = 0; i < size; i += 61) text[i] = static_cast<char>('0' + (i / 61) % 64);
  return text;
}

class Script {
 public:
  Script& Change(std::string name, std::function<Status(LivingStore&)> run) {
    steps_.push_back({std::move(name), true, false, std::move(run)});
    return *this;
  }
  Script& AddAgent(const std::string& agent) {
    steps_.push_back(
        {"agent add " + agent, true, true, [=](LivingStore& s) { return s.AddAgent(agent); }});
    return *this;
  }
  Script& RemoveAgent(const std::string& agent) {
    steps_.push_back({"agent rm " + agent, true, true,
                      [=](LivingStore& s) { return s->RemoveAgent(agent, false); }});
    return *this;
  }
  Script& Sync() {
    steps_.push_back({"sync", false, true, [](LivingStore& s) { return s->Sync(); }});
    return *this;
  }
  Script& Committer() {
    steps_.push_back(
        {"committer", false, true, [](LivingStore& s) { return s->RunCommitterOnce(); }});
    return *this;
  }
  Script& Checkpoint() {
    steps_.push_back({"checkpoint", false, true, [](LivingStore& s) { return s->Checkpoint(); }});
    return *this;
  }
  Script& Reopen() {
    steps_.push_back({"reopen", false, true, [](LivingStore& s) {
                        s.Close();
                        return s.Open();
                      }});
    return *this;
  }
  Script& Create(const std::string& path) {
    return Change("create " + path, [=](LivingStore& s) { return s.Create(path); });
  }
  Script& Commit(const std::string& path, size_t size, char seed) {
    return Change(fmt::format("commit {} {}", path, size),
                  [=](LivingStore& s) { return s.Commit(path, Text(size, seed)); });
  }
  Script& Put(const std::string& path, size_t size, char seed) {
    return Create(path).Commit(path, size, seed);
  }
  Script& Extend(const std::string& path, size_t size) {
    return Change("extend " + path,
                  [=](LivingStore& s) { return s.Extend(path, Text(size, '+')); });
  }
  Script& Tree(const std::string& path, size_t size, char seed) {
    return Change("commit tree " + path,
                  [=](LivingStore& s) { return s.CommitTree(path, Text(size, seed)); });
  }
  Script& Truncate(const std::string& path, uint64_t size) {
    return Change(fmt::format("note truncation {} {}", path, size),
                  [=](LivingStore& s) { return s.NoteTruncation(path, size); });
  }
  Script& Rename(const std::string& from, const std::string& to,
                 RenameMode mode = RenameMode::kReplace) {
    return Change(fmt::format("rename {} {}", from, to),
                  [=](LivingStore& s) { return s.Rename(from, to, mode); });
  }
  Script& Xattr(const std::string& path, const std::string& name, std::optional<Bytes> value) {
    return Change("xattr " + path, [=](LivingStore& s) { return s.SetXattr(path, name, value); });
  }
  Script& Mode(const std::string& path, uint32_t mode) {
    return Change("chmod " + path, [=](LivingStore& s) { return s.SetMode(path, mode); });
  }
  Script& Link(const std::string& path, const std::string& to) {
    return Change("link " + to, [=](LivingStore& s) { return s.MakeLink(path, to); });
  }
  Script& Unlink(const std::string& path) {
    return Change("unlink " + path, [=](LivingStore& s) { return s.Unlink(path); });
  }
  Script& Mkdir(const std::string& path) {
    return Change("mkdir " + path, [=](LivingStore& s) { return s.MakeDirectory(path); });
  }
  Script& Rmdir(const std::string& path) {
    return Change("rmdir " + path, [=](LivingStore& s) { return s.RemoveDirectory(path); });
  }
  Script& Symlink(const std::string& path, const std::string& target) {
    return Change("symlink " + path, [=](LivingStore& s) { return s.MakeSymlink(path, target); });
  }
  std::vector<Step> Take() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].run = [i, run = std::move(steps_[i].run)](LivingStore& s) {
        s.StartStep(i);
        return run(s);
      };
    }
    return std::move(steps_);
  }

 private:
  std::vector<Step> steps_;
};

void FirstDays(Script& s) {
  s.AddAgent("ada").Create("ada/empty").Put("ada/MEMORY.md", 900, 'a').Mkdir("ada/d");
  s.Put("ada/d/note", 5'000, 'n').Sync().Commit("ada/MEMORY.md", 1'200, 'b');
  s.Symlink("ada/link", "d/note").Link("ada/d/note", "ada/second").Committer();
  s.Put("ada/big", 100'000, 'B').Extend("ada/big", 300).Extend("ada/big", 200);
  s.Xattr("ada/big", "user.k", Bytes(2'000, 'x')).Mode("ada/MEMORY.md", 0600);
  s.Truncate("ada/big", 40'000).Xattr("ada/big", "user.l", Bytes("v"));
  s.Rename("ada/big", "ada/d/big").Sync().Mode("ada/d/big", 0640);
}

void Sealing(Script& s) {
  s.AddAgent("bob").Put("bob/one", 100'000, '1').Put("bob/two", 90'000, '2').Committer();
  s.Create("bob/new").Truncate("bob/new", 77).Put("bob/three", 70'000, '3');
  s.Put("bob/copy", 100'000, '1').Checkpoint();
  s.Rename("bob/two", "bob/one").Rename("bob/three", "bob/copy", RenameMode::kExchange);
  s.Put("ada/tmp", 800, 't').Rename("ada/tmp", "ada/MEMORY.md");
  s.Create("ada/target").Truncate("ada/target", 300'000).Put("ada/tmp", 10, 'u').Committer();
  s.Rename("ada/tmp", "ada/target").Create("ada/tree").Tree("ada/tree", 700'000, 'T');
  s.Create("ada/fleeting").Unlink("ada/fleeting").Xattr("ada/d/big", "user.k", {});
}

void AfterReopening(Script& s) {
  s.Reopen().Extend("ada/target", 30).Unlink("ada/second").Unlink("ada/d/note");
  s.Truncate("ada/tree", 500'000).Create("bob/late").Mkdir("bob/e").Rename("bob/e", "bob/f");
  s.Put("bob/f/x", 60'000, 'x').Put("bob/f/y", 60'000, 'y').Committer();
  s.Unlink("bob/f/x").Unlink("bob/f/y").Rmdir("bob/f").Reopen().Truncate("bob/late", 10);
  s.RemoveAgent("bob").Put("ada/last", 2'000, 'l').Commit("ada/last", 0, ' ').AddAgent("bob");
  s.Commit("bob/late", 120'000, 'L').Put("ada/again", 110'000, 'A').Committer();
  s.Truncate("ada/again", 0).Unlink("ada/again").Create("ada/end");
}

}  // namespace

std::vector<Step> CrashWorkload() {
  Script script;
  FirstDays(script);
  Sealing(script);
  AfterReopening(script);
  return script.Take();
}

}  // namespace memoirfs::testing
