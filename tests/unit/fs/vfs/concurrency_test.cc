// Many threads on one file and one directory: lock ranks are asserted in debug builds, and nothing
// that was acknowledged is lost.

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "tests/unit/fs/vfs/vfs_fixture.h"

namespace memoirfs::vfs {
namespace {

// Catch's assertions are not for several threads: failures are counted.
class Workers {
 public:
  void Start(std::function<Status()> work) {
    threads_.emplace_back([this, work = std::move(work)] {
      if (!work().ok()) ++failures_;
    });
  }
  int Join() {
    for (std::thread& thread : threads_) thread.join();
    return failures_;
  }

 private:
  std::vector<std::thread> threads_;
  std::atomic<int> failures_{0};
};

TEST_CASE("Appends of several handles are all kept, while the file is committed and read") {
  VfsFixture f;
  constexpr size_t kAppends = 100;
  const NodeId node = f.Create("log").node.id;
  View& view = f.view();
  Workers workers;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    workers.Start([&view, node, letter]() -> Status {
      ASSIGN_OR_RETURN(const Opened opened, view.Open(node, O_WRONLY | O_APPEND, kUser));
      for (size_t i = 0; i < kAppends; ++i) {
        TRY(view.Write(opened.handle, 0, Bytes(1000, letter), false, kUser));
        if (i % 10 == 0) TRY(view.Flush(opened.handle));
        TRY(view.Read(opened.handle, i * 1000, 1000));
        TRY(view.GetAttributes(node));
      }
      TRY(view.Flush(opened.handle));
      return view.Release(opened.handle);
    });
  }
  CHECK(workers.Join() == 0);
  const Bytes content = f.Contents(node);
  CHECK(content.size() == 4 * kAppends * 1000);
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    CHECK(std::count(content.begin(), content.end(), letter) == kAppends * 1000);
  }
  f.Restart();
  CHECK((f.ContentsOf("log") == content));
}

TEST_CASE("Saves by rename in one directory, from two views, do not disturb each other") {
  VfsFixture f;
  const auto other = f.OpenView();
  Workers workers;
  for (int worker = 0; worker < 4; ++worker) {
    View& view = worker % 2 == 0 ? f.view() : *other;
    workers.Start([&view, &f, worker]() -> Status {
      const std::string name = "f" + std::to_string(worker);
      for (int i = 0; i < 30; ++i) {
        ASSIGN_OR_RETURN(const View::Created created,
                         view.Create(f.memory(), name + ".tmp", 0644, O_RDWR, kUser));
        TRY(view.Write(created.opened.handle, 0, std::to_string(i), false, kUser));
        TRY(view.Rename(f.memory(), name + ".tmp", f.memory(), name, volume::RenameMode::kReplace,
                        kUser));
        TRY(view.Flush(created.opened.handle));
        TRY(view.Release(created.opened.handle));
      }
      return {};
    });
  }
  CHECK(workers.Join() == 0);
  for (int worker = 0; worker < 4; ++worker) {
    CHECK(f.ContentsOf("f" + std::to_string(worker)) == "29");
  }
  CHECK(f.vfs().dirty_bytes() == 0);
}

// Threads that make, move and remove the file "a" of one directory, through two views.
class Contest {
 public:
  explicit Contest(VfsFixture& f) : f_(f), other_(f.OpenView()) {}

  Status MakeOften(int number) {
    for (int i = 0; i < kRounds; ++i) {
      const auto created = ViewOf(number).Create(f_.memory(), "a", 0644, O_RDWR | O_EXCL, kUser);
      TRY(Allowed(created.status(), {Code::kExists, Code::kStale}));
      if (!created.ok()) continue;
      TRY(ViewOf(number).Release(created->opened.handle));
      const std::lock_guard lock(mutex_);
      made_.insert(created->node.id.value);
    }
    return {};
  }
  Status MoveOften(int number) {
    for (int i = 0; i < kRounds; ++i) {
      const std::string to = "b" + std::to_string(number) + "-" + std::to_string(i);
      const Status moved = ViewOf(number).Rename(f_.memory(), "a", f_.memory(), to,
                                                 volume::RenameMode::kNoReplace, kUser);
      TRY(Allowed(moved, {Code::kNotFound}));
    }
    return {};
  }
  Status RemoveOften() {
    for (int i = 0; i < kRounds; ++i) {
      const auto gone = f_.volume().Unlink(f_.stream(), kRootInode, "a", {});
      TRY(Allowed(gone.status(), {Code::kNotFound}));
      if (!gone.ok()) continue;
      const std::lock_guard lock(mutex_);
      gone_.insert(RealNode(f_.stream(), gone->id).value);
    }
    return {};
  }
  // Files whose making was acknowledged, that are not there and that nobody removed.
  size_t Lost() {
    std::set<uint64_t> known = gone_;
    for (const auto& entry : Must(f_.volume().List(f_.stream(), kRootInode, {}, SIZE_MAX))) {
      known.insert(RealNode(f_.stream(), entry.ino).value);
    }
    return static_cast<size_t>(std::count_if(
        made_.begin(), made_.end(), [&](uint64_t node) { return known.count(node) == 0; }));
  }

 private:
  static constexpr int kRounds = 10'000;

  static Status Allowed(const Status& status, std::initializer_list<Code> codes) {
    const bool allowed = std::find(codes.begin(), codes.end(), status.code()) != codes.end();
    return allowed ? Status() : status;
  }
  View& ViewOf(int number) { return number % 2 == 0 ? f_.view() : *other_; }

  VfsFixture& f_;
  const std::unique_ptr<View> other_;
  std::mutex mutex_;
  std::set<uint64_t> made_;
  std::set<uint64_t> gone_;
};

TEST_CASE("A contest for one name fails only as it may and loses nothing") {
  VfsFixture f;
  Contest contest(f);
  Workers workers;
  for (int number = 0; number < 2; ++number) {
    workers.Start([&, number] { return contest.MakeOften(number); });
    workers.Start([&, number] { return contest.MoveOften(number); });
    workers.Start([&] { return contest.RemoveOften(); });
  }
  CHECK(workers.Join() == 0);
  CHECK(contest.Lost() == 0);
}

}  // namespace
}  // namespace memoirfs::vfs
