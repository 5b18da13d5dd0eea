// One bit of a store is flipped, and the store is opened, read and verified: for the bytes of every
// kind of file that a store has. No byte that was not stored may be read, no name may vanish, only
// what lay where the damage is may fail, and whatever failed must be reported.
//
// Two stores are damaged: one that was stopped cleanly, and one whose process was killed. Each
// opening is as it is, or with the index rebuilt, by turns. Of each kind so many bytes are hit that
// the program stays short, spread evenly; MEMOIRFS_DAMAGE_ALL=1 hits every byte, but only every
// 64th of runs of zeros, such as the unused space of a journal. Which bit is chosen by a seed.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "store/base/log.h"
#include "store/cas/chunk_tree.h"
#include "store/journal/scan.h"
#include "store/volume/verify.h"
#include "store/volume/volume.h"
#include "tests/support/sim_io.h"
#include "tests/support/temp_directory.h"

namespace memoirfs::volume {
namespace {

using testing::SimIo;

// MEMOIRFS_DAMAGE_SEED=<n> chooses other bytes and bits.
uint64_t Seed() {
  const char* const text = std::getenv("MEMOIRFS_DAMAGE_SEED");
  return text == nullptr ? 20260131 : std::strtoull(text, nullptr, 10);
}

constexpr uint64_t kStrideOfZeros = 64;
// Room for the store, and too little for a spare file, which every copy would carry.
constexpr uint64_t kCapacity = 48U << 20;
const chain::Actor kActor{1000, 1000, 42, "test"};
const NewNode kFile{S_IFREG | 0644, 1000, 1000, 0};
const NewNode kDirectory{S_IFDIR | 0755, 1000, 1000, 0};
const NewNode kLink{S_IFLNK | 0777, 1000, 1000, 0};

VolumeOptions Options() {
  VolumeOptions options;
  options.journal = {20U << 10, 4U << 10};
  options.segments.roll_bytes = 6U << 10;
  options.background = false;
  return options;
}

template <typename T>
T Must(Result<T> result) {
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  return std::move(result).value();
}

void Must(const Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

// What a tree holds, by agent and path: the kind and the bytes. An attribute is "path@name".
using Tree = std::map<std::string, std::string>;
// The objects that a file needs to be read.
using Objects = std::map<std::string, std::set<Digest>>;

// --- a store with everything in it --------------------------------------------------------------

class Author {
 public:
  Author() : io_(std::make_unique<SimIo>()) {
    io_->SetCapacity(kCapacity);
    Must(InitStore(*io_, Options()));
  }

  void Open() { volume_ = Must(Volume::Open(*io_, Clock::Real(), Options())); }
  void Close() { volume_.reset(); }
  // The process dies; what it wrote is there.
  void Kill() {
    auto rest = io_->AfterKill();
    rest->SetCapacity(kCapacity);
    volume_.reset();
    io_ = std::move(rest);
  }
  void Commit() { Must(volume_->RunCommitterOnce()); }
  void Sync() { Must(volume_->Sync()); }
  const SimIo& io() const { return *io_; }
  const Tree& tree() const { return tree_; }
  const Objects& objects() const { return objects_; }

  void AddAgent(const std::string& name) {
    streams_[name] = Must(volume_->AddAgent(name, 1000, 1000)).stream;
  }

  void Put(const std::string& agent, const std::string& name, const std::string& text) {
    Store(agent, name, text, {});
  }

  // Stored as a suffix of what is there.
  void Append(const std::string& agent, const std::string& name, const std::string& suffix) {
    const std::string before = tree_.at(agent + "/" + name);
    Store(agent, name, before + suffix, Sha256::Of(before));
  }

  // Above the size of one chunk, the first of which is a hole.
  void PutBig(const std::string& agent, const std::string& name, const std::string& end) {
    const Inode inode = Must(volume_->Create(streams_[agent], kRootInode, name, kFile, kActor));
    const Digest chunk = Sha256::Of(end);
    const auto session = Must(volume_->StartChunkSession());
    Must(session->Store(chunk, std::make_shared<const Bytes>(end)));
    Must(session->Finish());
    cas::ChunkTree chunks(volume_->objects());
    Must(chunks.SetChunk(1, chunk));
    std::vector<NewObject> nodes;
    const ContentId content =
        Must(chunks.Seal(cas::kChunkSize + end.size(), [&](const Digest& digest, Buffer bytes) {
          nodes.push_back(NewObject{digest, std::move(bytes), {}, 0});
          return Status();
        }));
    (void)Must(volume_->CommitContent(streams_[agent], inode.id, content, nodes, inode.attributes,
                                      kActor));
    const std::string path = agent + "/" + name;
    tree_[path] = std::string(cas::kChunkSize, '\0') + end;
    objects_[path].insert(chunk);
    for (const NewObject& node : nodes) objects_[path].insert(node.digest);
  }

  void MakeDirectory(const std::string& agent, const std::string& name) {
    (void)Must(volume_->MakeDirectory(streams_[agent], kRootInode, name, kDirectory, kActor));
    tree_[agent + "/" + name] = "directory";
  }

  void MakeSymlink(const std::string& agent, const std::string& name, const std::string& target) {
    (void)Must(volume_->MakeSymlink(streams_[agent], kRootInode, name, kLink, target, kActor));
    tree_[agent + "/" + name] = target;
    objects_[agent + "/" + name].insert(Sha256::Of(target));
  }

  void SetXattr(const std::string& agent, const std::string& name, const std::string& value) {
    const Entry entry = Must(volume_->Lookup(streams_[agent], kRootInode, name));
    Must(volume_->SetXattr(streams_[agent], entry.ino, "user.tag", value, kActor));
    tree_[agent + "/" + name + "@user.tag"] = value;
    objects_[agent + "/" + name + "@user.tag"].insert(Sha256::Of(value));
  }

  // Into a directory below the root.
  void Move(const std::string& agent, const std::string& name, const std::string& directory,
            const std::string& new_name) {
    const StreamId stream = streams_[agent];
    const InodeId to = Must(volume_->Lookup(stream, kRootInode, directory)).ino;
    (void)Must(
        volume_->Rename(stream, kRootInode, name, to, new_name, RenameMode::kReplace, kActor));
    const std::string from_path = agent + "/" + name;
    const std::string to_path = agent + "/" + directory + "/" + new_name;
    tree_[to_path] = tree_.at(from_path);
    objects_[to_path] = objects_.at(from_path);
    tree_.erase(from_path);
    objects_.erase(from_path);
  }

 private:
  void Store(const std::string& agent, const std::string& name, const std::string& text,
             const std::optional<Digest>& base) {
    const StreamId stream = streams_[agent];
    const auto entry = volume_->Lookup(stream, kRootInode, name);
    const Inode inode = entry.ok() ? Must(volume_->GetInode(stream, entry->ino))
                                   : Must(volume_->Create(stream, kRootInode, name, kFile, kActor));
    const Digest digest = Sha256::Of(text);
    const uint64_t suffix_offset = base ? tree_.at(agent + "/" + name).size() : 0;
    const NewObject object{digest, std::make_shared<const Bytes>(text), base, suffix_offset};
    (void)Must(volume_->CommitContent(stream, inode.id, ContentId{digest, text.size(), {}},
                                      {&object, 1}, inode.attributes, kActor));
    const std::string path = agent + "/" + name;
    tree_[path] = text;
    if (!base) objects_[path].clear();
    objects_[path].insert(digest);
  }

  std::unique_ptr<SimIo> io_;
  std::unique_ptr<Volume> volume_;
  std::map<std::string, StreamId> streams_;
  Tree tree_;
  Objects objects_;
};

// Sealed and carried packs, a bulk pack, several segments of two chains, an index.
void WriteHistory(Author& author) {
  author.Open();
  author.AddAgent("ada");
  author.AddAgent("bob");
  author.Put("ada", "MEMORY.md", "# memory\n");
  author.Put("ada", "log", std::string(1100, 'l'));
  author.Append("ada", "log", "one more line\n");
  author.Append("ada", "log", "and another\n");
  author.MakeDirectory("ada", "notes");
  author.MakeSymlink("ada", "link", "notes/caf\xC3\xA9");
  author.SetXattr("ada", "MEMORY.md", "important");
  for (int i = 0; i < 12; ++i) author.Put("bob", "f" + std::to_string(i % 4), std::to_string(i));
  author.Commit();  // seals the first journal
  author.Kill();
  author.Open();  // carries the second
  author.PutBig("ada", "big", "the end of a big file");
  author.Put("ada", "draft", "moved later");
  author.Move("ada", "draft", "notes", "caf\xC3\xA9");
  author.Append("ada", "log", "the last line\n");
  author.SetXattr("bob", "f1", std::string(300, 'x'));
}

Author StoppedStore() {
  Author author;
  WriteHistory(author);
  author.Close();
  return author;
}

// The last records are durable in the journal, and some are nowhere else.
Author KilledStore() {
  Author author;
  WriteHistory(author);
  author.Close();
  author.Open();
  author.Put("bob", "late", "in journal and chain");
  author.Commit();
  author.Put("bob", "only-in-journal", "the segment lacks its record");
  author.Sync();
  author.Kill();
  return author;
}

// --- what an opened store shows -----------------------------------------------------------------

struct Reading {
  Tree tree;
  std::map<std::string, Status> refused;
  Status listing;  // the first failure that hides names

  bool Whole(const Tree& expected) const {
    return listing.ok() && refused.empty() && tree == expected;
  }
};

class Reader {
 public:
  explicit Reader(Volume& volume) : volume_(volume) {}

  Reading Run() {
    for (const AgentFacts& agent : volume_.ListAgents()) {
      stream_ = agent.stream;
      ReadDirectory(agent.name, kRootInode);
    }
    return std::move(reading_);
  }

 private:
  void ReadDirectory(const std::string& path, InodeId dir) {
    const auto entries = volume_.List(stream_, dir, Cookie(), 1000);
    if (!entries.ok()) return Hide(entries.status());
    for (const Entry& entry : *entries) ReadEntry(path + "/" + entry.name, entry.ino);
  }

  void ReadEntry(const std::string& path, InodeId ino) {
    const auto inode = volume_.GetInode(stream_, ino);
    if (!inode.ok()) return Hide(inode.status());
    if (inode->attributes.IsDirectory()) {
      reading_.tree[path] = "directory";
      ReadDirectory(path, ino);
    } else if (inode->attributes.IsSymlink()) {
      Keep(path, volume_.ReadLink(stream_, ino));
    } else {
      Keep(path, cas::ReadContent(volume_.objects(), inode->content, 0, inode->content.size));
    }
    const auto names = volume_.ListXattrs(stream_, ino);
    if (!names.ok()) return Hide(names.status());
    for (const std::string& name : *names) {
      Keep(path + "@" + name, volume_.GetXattr(stream_, ino, name));
    }
  }

  void Keep(const std::string& path, const Result<std::string>& bytes) {
    if (bytes.ok()) {
      reading_.tree[path] = *bytes;
    } else {
      reading_.refused[path] = bytes.status();
    }
  }

  void Hide(const Status& why) {
    if (reading_.listing.ok()) reading_.listing = why;
  }

  Volume& volume_;
  StreamId stream_;
  Reading reading_;
};

// --- one flip -----------------------------------------------------------------------------------

enum class Kind { kFormat, kJournal, kUnusedJournal, kPack, kBulk, kChain, kIndex, kCount };
constexpr std::array kKindNames = {"FORMAT",    "journal", "unused journal", "pack",
                                   "bulk pack", "chain",   "index"};
// How many bytes of each kind are hit in each store, unless all are.
constexpr std::array<uint64_t, 7> kBudget = {20, 100, 10, 120, 50, 110, 80};

struct Place {
  Kind kind{};
  std::string path;
  uint64_t offset = 0;
};

// What the log got since the last look.
class LogTail {
 public:
  LogTail() : path_(directory_.path() + "/log") {
    Must(LogToFile(path_));
    SetLogLevel(LogLevel::kWarn);
  }
  std::string Take() {
    std::ifstream in(path_);
    in.seekg(static_cast<std::streamoff>(at_));
    std::string text((std::istreambuf_iterator<char>(in)), {});
    at_ += text.size();
    return text;
  }

 private:
  test::TempDirectory directory_;
  std::string path_;
  uint64_t at_ = 0;
};

class Damager {
 public:
  explicit Damager(const Author& author) : author_(author), io_(author.io().AfterKill()) {
    for (const char* directory : {"journal", "packs", "index", "chains"}) Enter(directory);
    AddFile("FORMAT");
  }

  void Run() {
    for (size_t kind = 0; kind < places_.size(); ++kind) {
      const std::vector<Place>& places = places_[kind];
      const uint64_t flips = every_ ? places.size() : std::min(kBudget[kind], places.size());
      for (uint64_t i = 0; i < flips; ++i) {
        // Spread evenly, from a point that the seed chooses.
        const uint64_t from = random_() % places.size();
        Hit(places[every_ ? i
                          : (i * places.size() / flips + from % (places.size() / flips)) %
                                places.size()]);
      }
      std::cout << kKindNames[kind] << ": " << flips << " flips in " << places.size() << " places\n"
                << std::flush;
    }
    std::cout << "seed " << Seed() << ": " << refusals_ << " refusals, " << violations_
              << " violations\n";
    CHECK(violations_ == 0);
  }

 private:
  void Enter(const std::string& directory) {
    for (const std::string& name : Must(io_->List(directory))) {
      const std::string path = directory + "/" + name;
      if (Must(io_->Stat(path)).is_directory) {
        Enter(path);
      } else {
        AddFile(path);
      }
    }
  }

  Kind KindOf(const std::string& path) const {
    if (path == "FORMAT") return Kind::kFormat;
    if (path.starts_with("journal/")) return Kind::kJournal;
    if (path.starts_with("chains/")) return Kind::kChain;
    if (path.starts_with("index/")) return Kind::kIndex;
    return path.ends_with(".bulk") ? Kind::kBulk : Kind::kPack;
  }

  void AddFile(const std::string& path) {
    const Bytes bytes = Must(ReadWholeFile(*io_, path));
    const Kind kind = KindOf(path);
    const uint64_t used = kind == Kind::kJournal ? FindFrames(path) : bytes.size();
    if (kind == Kind::kPack || kind == Kind::kBulk) FindFrames(path);
    for (uint64_t at = 0; at < bytes.size(); at += at < used ? 1 : kStrideOfZeros) {
      const Kind here = at < used ? kind : Kind::kUnusedJournal;
      places_[static_cast<size_t>(here)].push_back({here, path, at});
    }
  }

  struct FrameRange {
    uint64_t end = 0;
    journal::FrameType type{};
    Digest object;
    std::string record;
  };

  // Where the frames of a file end.
  uint64_t FindFrames(const std::string& path) {
    const auto file = Must(io_->Open(path, OpenMode::kRead));
    const size_t slash = path.find('/') + 1;
    const journal::PackId pack{std::strtoull(path.c_str() + slash, nullptr, 10),
                               path.ends_with(".bulk")};
    const auto scan = Must(journal::ScanFrames(
        *file, pack, 0,
        [&](const journal::FrameHeader& header, const journal::Location& where, ByteView payload) {
          FrameRange& frame = frames_[path][where.offset];
          frame.end = where.offset + header.Footprint();
          frame.type = header.type;
          const bool is_object = header.type == journal::FrameType::kBlob ||
                                 header.type == journal::FrameType::kExtend;
          if (is_object) frame.object = Digest::FromRaw(payload.substr(0, Digest::kSize));
          if (header.type == journal::FrameType::kRecord) frame.record = std::string(payload);
          return Status();
        }));
    REQUIRE(scan.damage.empty());
    return scan.good_end;
  }

  const FrameRange* FrameAt(const Place& place) const {
    const auto file = frames_.find(place.path);
    if (file == frames_.end()) return nullptr;
    auto frame = file->second.upper_bound(place.offset);
    if (frame == file->second.begin()) return nullptr;
    --frame;
    return place.offset < frame->second.end ? &frame->second : nullptr;
  }

  bool MayRefuse(const Place& place, const std::string& path) const {
    const FrameRange* const frame = FrameAt(place);
    const auto objects = author_.objects().find(path);
    return frame != nullptr && objects != author_.objects().end() &&
           objects->second.count(frame->object) != 0;
  }

  // A record that nothing but the damaged frame held.
  bool MayLack(const Place& place, const std::string& path) const {
    const FrameRange* const frame = FrameAt(place);
    return place.kind == Kind::kJournal && path == "bob/only-in-journal" && frame != nullptr &&
           frame->record.find("only-in-journal") != std::string::npos;
  }

  void Hit(const Place& place) {
    const bool rebuild = random_() % 2 == 0;
    const int bit = static_cast<int>(random_() % 8);
    const auto io = io_->AfterKill();
    io->SetCapacity(kCapacity);
    Bytes byte = Must(Must(io->Open(place.path, OpenMode::kRead))->ReadAt(place.offset, 1));
    byte[0] = static_cast<char>(byte[0] ^ (1 << bit));
    REQUIRE(io->Overwrite(place.path, place.offset, byte));
    if (rebuild) Must(WriteFileAtomically(*io, "REBUILD", {}));
    where_ = place.path + " at " + std::to_string(place.offset) + ", bit " + std::to_string(bit) +
             (rebuild ? ", rebuilt" : "");
    log_.Take();
    auto volume = Volume::Open(*io, Clock::Real(), Options());
    if (!volume.ok() || place.kind == Kind::kFormat) return JudgeOpening(place, volume.status());
    JudgeReading(place, **volume, *io);
    if (place.kind == Kind::kIndex) Reopen(*io, std::move(*volume));
  }

  void JudgeOpening(const Place& place, const Status& status) {
    const bool clear = (status.code() == Code::kCorrupt || status.code() == Code::kUnknownFormat) &&
                       status.ToString().find("FORMAT") != std::string::npos;
    if (place.kind != Kind::kFormat || !clear) Violation("opening: " + status.ToString());
    ++refusals_;
  }

  // Reads fail until the next opening, which rebuilds the index.
  void Reopen(FileIo& io, std::unique_ptr<Volume> volume) {
    volume.reset();
    volume = Must(Volume::Open(io, Clock::Real(), Options()));
    const Reading reading = Reader(*volume).Run();
    if (!reading.Whole(author_.tree())) Violation("not whole after the index was rebuilt");
  }

  void JudgeReading(const Place& place, Volume& volume, FileIo& io) {
    const Reading reading = Reader(volume).Run();
    for (const auto& [path, bytes] : reading.tree) {
      const auto expected = author_.tree().find(path);
      if (expected == author_.tree().end()) {
        Violation("a name that never was: " + path);
      } else if (bytes != expected->second) {
        Violation("other bytes in " + path);
      }
    }
    bool failed = !reading.listing.ok();
    if (failed && (place.kind != Kind::kIndex || reading.listing.ToErrno() != EIO)) {
      Violation("names cannot be listed: " + reading.listing.ToString());
    }
    for (const auto& [path, why] : reading.refused) {
      failed = true;
      if (why.ToErrno() != EIO) Violation(path + " is refused: " + why.ToString());
      if (place.kind != Kind::kIndex && !MayRefuse(place, path)) {
        Violation(path + " is refused, and was not hit: " + why.ToString());
      }
    }
    for (const auto& [path, bytes] : author_.tree()) {
      if (reading.tree.count(path) != 0 || reading.refused.count(path) != 0) continue;
      if (!reading.listing.ok()) continue;
      failed = true;
      if (!MayLack(place, path)) Violation(path + " is lost");
    }
    refusals_ += failed ? 1 : 0;
    JudgeReport(place, volume, io, failed, !reading.refused.empty());
  }

  void JudgeReport(const Place& place, Volume& volume, FileIo& io, bool failed, bool refused) {
    // What is derived or unused may be wrong without a word, as long as nothing came of it.
    const bool derived = place.kind == Kind::kIndex || place.kind == Kind::kUnusedJournal;
    if (derived && !failed) return;
    const auto report = VerifyVolume(volume, {}, {});
    if (!report.ok() && place.kind != Kind::kIndex) {
      Violation("verify fails: " + report.status().ToString());
    }
    const bool found = !report.ok() || !report->problems.empty();
    const bool told = !log_.Take().empty() || !volume.Facts().corrupt.empty();
    if (place.kind == Kind::kChain ? !found && !Repaired(place, io) : !found && !told) {
      Violation("nothing reports it");
    }
    if (refused && !found) Violation("verify does not report what is refused");
  }

  bool Repaired(const Place& place, FileIo& io) const {
    const Bytes before = Must(ReadWholeFile(*io_, place.path));
    const Bytes after = Must(ReadWholeFile(io, place.path));
    return after.substr(0, before.size()) == before;
  }

  void Violation(const std::string& what) {
    constexpr uint64_t kShown = 40;
    if (++violations_ <= kShown) std::cout << where_ << ": " << what << std::endl;
  }

  const Author& author_;
  const std::unique_ptr<SimIo> io_;
  const bool every_ = std::getenv("MEMOIRFS_DAMAGE_ALL") != nullptr;
  LogTail log_;
  std::mt19937_64 random_{Seed()};
  std::array<std::vector<Place>, static_cast<size_t>(Kind::kCount)> places_;
  std::map<std::string, std::map<uint64_t, FrameRange>> frames_;
  std::string where_;
  uint64_t refusals_ = 0;
  uint64_t violations_ = 0;
};

}  // namespace

TEST_CASE("a flipped bit in a store that was stopped cleanly is never read as content") {
  Damager(StoppedStore()).Run();
}

TEST_CASE("a flipped bit in a store whose process was killed is never read as content") {
  Damager(KilledStore()).Run();
}

}  // namespace memoirfs::volume
