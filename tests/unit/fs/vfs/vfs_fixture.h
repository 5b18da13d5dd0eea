#pragma once

// A store in a directory of its own with the agent "ada", and a view of it. Nothing runs in the
// background, and the clock stands still until a test moves it.

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "fs/vfs/node_id.h"
#include "fs/vfs/vfs.h"
#include "tests/support/temp_directory.h"

namespace memoirfs::vfs {

class StoppedClock : public Clock {
 public:
  Nanos Now() const override { return now_; }
  Nanos Monotonic() const override { return now_; }
  void Advance(Nanos by) { now_ += by; }

 private:
  Nanos now_ = 1'700'000'000'123'456'789;
};

template <typename T>
T Must(Result<T> result) {
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  return std::move(result).value();
}

inline void Must(const Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

inline constexpr Caller kUser{1000, 1000, 0, 022};
inline constexpr Caller kRootUser{0, 0, 0, 022, true};
inline constexpr Nanos kSecond = 1'000'000'000;

class VfsFixture {
 public:
  explicit VfsFixture(VfsOptions options = {}) : options_(options) {
    options_.background = false;
    io_ = Must(OpenRealIo(directory_.path()));
    Must(volume::InitStore(*io_, VolumeOptions()));
    OpenVolume();
    stream_ = Must(volume_->AddAgent("ada", kUser.uid, kUser.gid)).stream;
    OpenVfs();
  }

  ~VfsFixture() { Close(); }

  // As after kill -9 of the daemon: what is only in memory is gone.
  void Restart() {
    Close();
    OpenVolume();
    OpenVfs();
  }

  std::unique_ptr<View> OpenView(ViewOptions options = {}, KernelNotifier* notifier = nullptr) {
    return Must(vfs_->OpenView(options, notifier));
  }

  NodeId memory() const { return RealNode(stream_, kRootInode); }
  StreamId stream() const { return stream_; }
  View& view() { return *view_; }
  Vfs& vfs() { return *vfs_; }
  volume::Volume& volume() { return *volume_; }
  StoppedClock& clock() { return clock_; }
  FileIo& io() { return *io_; }

  View::Created Create(const std::string& name, int flags = O_RDWR) {
    return Must(view_->Create(memory(), name, 0644, flags, kUser));
  }
  void Write(HandleId handle, uint64_t offset, ByteView data) {
    REQUIRE(Must(view_->Write(handle, offset, data, false, kUser)) == data.size());
  }
  void Close(HandleId handle) {
    Must(view_->Flush(handle));
    Must(view_->Release(handle));
  }
  NodeId Put(const std::string& name, ByteView content) {
    const View::Created created = Create(name);
    Write(created.opened.handle, 0, content);
    Close(created.opened.handle);
    return created.node.id;
  }
  Bytes Contents(NodeId node) { return ContentsIn(*view_, node); }
  static Bytes ContentsIn(View& view, NodeId node) {
    const Opened opened = Must(view.Open(node, O_RDONLY, kUser));
    Bytes content;
    while (true) {
      const Bytes piece = Must(view.Read(opened.handle, content.size(), 128 * 1024));
      if (piece.empty()) break;
      content += piece;
    }
    Must(view.Release(opened.handle));
    return content;
  }
  Bytes ContentsOf(const std::string& name) { return Contents(IdOf(name)); }
  NodeId IdOf(const std::string& name) { return Must(view_->Lookup(memory(), name)).id; }

  // What the chain says, without genesis and session: "put notes.md".
  std::vector<std::string> Records() {
    std::vector<std::string> records;
    for (const chain::Change& change : Changes()) {
      records.push_back(std::string(chain::OpName(change.op)) + " " + change.path);
    }
    return records;
  }
  std::vector<chain::Change> Changes() {
    std::vector<chain::Change> changes;
    Must(volume_->ForEachRecord(stream_, Seq{1},
                                [&](const chain::ParsedRecord& record, std::string_view) -> Status {
                                  const chain::Op op = record.change.op;
                                  if (op != chain::Op::kGenesis && op != chain::Op::kSession) {
                                    changes.push_back(record.change);
                                  }
                                  return {};
                                }));
    return changes;
  }

 private:
  static volume::VolumeOptions VolumeOptions() {
    volume::VolumeOptions options;
    options.background = false;
    options.journal.file_size = 8U << 20;
    options.journal.reserve = 1U << 20;
    return options;
  }
  void OpenVolume() { volume_ = Must(volume::Volume::Open(*io_, clock_, VolumeOptions())); }
  void OpenVfs() {
    vfs_ = std::make_unique<Vfs>(*volume_, options_);
    view_ = OpenView();
  }
  void Close() {
    view_.reset();
    vfs_.reset();
    volume_.reset();
  }

  VfsOptions options_;
  test::TempDirectory directory_;
  StoppedClock clock_;
  std::unique_ptr<FileIo> io_;
  std::unique_ptr<volume::Volume> volume_;
  StreamId stream_;
  std::unique_ptr<Vfs> vfs_;
  std::unique_ptr<View> view_;
};

}  // namespace memoirfs::vfs
