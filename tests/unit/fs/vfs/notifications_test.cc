#include "fs/vfs/notifications.h"

#include <algorithm>

#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

// Remembers what it was told, and lets a test wait for it.
class Recorder : public KernelNotifier {
 public:
  void EntryChanged(NodeId parent, const std::string& name) override {
    Add("entry " + std::to_string(parent.value) + " " + name);
  }
  void ContentChanged(NodeId node) override { Add("content " + std::to_string(node.value)); }
  void AttributesChanged(NodeId node) override { Add("attributes " + std::to_string(node.value)); }

  std::vector<std::string> WaitFor(size_t count) {
    MutexLock lock(mutex_);
    while (lines_.size() < count && changed_.WaitFor(mutex_, std::chrono::seconds(20))) {
    }
    return lines_;
  }

  std::vector<std::string> WaitForLine(const std::string& line) {
    MutexLock lock(mutex_);
    while (std::find(lines_.begin(), lines_.end(), line) == lines_.end() &&
           changed_.WaitFor(mutex_, std::chrono::seconds(20))) {
    }
    return lines_;
  }

 private:
  void Add(std::string line) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

using Lines = std::vector<std::string>;

TEST_CASE("Other views are told of changes in the order of each directory, and the own is not") {
  VfsFixture f;
  Recorder own;
  Recorder other;
  const auto changing = f.OpenView({}, &own);
  const auto watching = f.OpenView({}, &other);
  const std::string memory = std::to_string(f.memory().value);
  const NodeId dir = Must(changing->MakeDirectory(f.memory(), "d", 0755, kUser)).id;
  Must(changing->SetAttributes(dir, {}, std::nullopt, kUser));
  Must(changing->RemoveDirectory(f.memory(), "d", kUser));
  const View::Created file = Must(changing->Create(f.memory(), "f", 0644, O_RDWR, kUser));
  Must(changing->Write(file.opened.handle, 0, "x", false, kUser));
  const std::string content = "content " + std::to_string(file.node.id.value);
  Lines lines = other.WaitForLine(content);
  // That the directory is gone is told a second time, unless the first still waited then.
  if (lines.size() == 5) lines.erase(lines.begin() + 2);
  CHECK(lines == Lines{"entry " + memory + " d", "attributes " + std::to_string(dir.value),
                       "entry " + memory + " f", content});
  CHECK(own.WaitFor(0).empty());
}

TEST_CASE("A view of one agent is not told of another's changes") {
  VfsFixture f;
  const StreamId bob = Must(f.volume().AddAgent("bob", 1, 1)).stream;
  Recorder recorder;
  const auto watching = f.OpenView({"bob", false}, &recorder);
  f.Put("f", "x");
  Must(f.view().MakeDirectory(RealNode(bob, kRootInode), "d", 0755, kUser));
  CHECK(recorder.WaitFor(1).at(0) ==
        "entry " + std::to_string(RealNode(bob, kRootInode).value) + " d");
}

TEST_CASE("Mounts of all agents are told of an agent before the call returns, and no others") {
  VfsFixture f;
  Recorder recorder;
  Recorder of_one;
  const auto watching = f.OpenView({}, &recorder);
  const auto one = f.OpenView({"ada", false}, &of_one);
  f.vfs().AgentChanged("bob");
  CHECK(recorder.WaitFor(0) == Lines{"entry 1 bob"});
  CHECK(of_one.WaitFor(0).empty());
}

TEST_CASE("The folders around a memory are announced when its owner or mode changes") {
  VfsFixture f;
  Recorder own;
  Recorder other;
  const auto changing = f.OpenView({}, &own);
  const auto watching = f.OpenView({"ada", false}, &other);
  const auto told = [](NodeId node) { return "attributes " + std::to_string(node.value); };
  const Lines layout = {told(kRootNode), told(VirtualNode(f.stream(), VirtualKind::kAgent)),
                        told(VirtualNode(f.stream(), VirtualKind::kMemoir)),
                        told(VirtualNode(f.stream(), VirtualKind::kShared))};
  AttributeChange change;
  change.mode = 0755;
  Must(changing->SetAttributes(f.memory(), change, std::nullopt, kUser));
  CHECK(own.WaitFor(0) == layout);  // at once
  Lines with_memory = layout;
  with_memory.insert(with_memory.begin(), told(f.memory()));
  CHECK(other.WaitFor(5) == with_memory);

  change = {};
  change.mtime = 5;
  Must(changing->SetAttributes(f.memory(), change, std::nullopt, kUser));
  CHECK(own.WaitFor(0) == layout);
}

TEST_CASE("A kernel that was not told yet does not keep its cache at open") {
  // A notifier that hangs until it is released.
  class Slow : public Recorder {
   public:
    void ContentChanged(NodeId node) override {
      {
        MutexLock lock(mutex_);
        while (!released_) released_changed_.Wait(mutex_);
      }
      Recorder::ContentChanged(node);
    }
    void Release() {
      MutexLock lock(mutex_);
      released_ = true;
      released_changed_.NotifyAll();
    }

   private:
    Mutex mutex_;
    CondVar released_changed_;
    bool released_ GUARDED_BY(mutex_) = false;
  };
  VfsFixture f;
  Slow slow;
  const auto watching = f.OpenView({}, &slow);
  const View::Created file = f.Create("f");
  CHECK(slow.WaitFor(1).size() == 1);
  f.Write(file.opened.handle, 0, "x");
  CHECK_FALSE(Must(watching->Open(file.node.id, O_RDONLY, kUser)).keep_cache);
  slow.Release();
  CHECK(slow.WaitFor(2).size() == 2);
}

}  // namespace
}  // namespace memoirfs::vfs
