// Makes the golden stores: make_store DIRECTORY writes DIRECTORY/clean, a store that was closed,
// and DIRECTORY/killed, its files as they were while it was open. See README.md.

#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fs/vfs/node_id.h"
#include "fs/vfs/vfs.h"
#include "store/base/clock.h"
#include "tests/golden/store/contents.h"

namespace {

using memoirfs::Result;
using memoirfs::Status;
using memoirfs::vfs::NodeId;
using memoirfs::vfs::View;

constexpr memoirfs::vfs::Caller kUser{1000, 1000, 0, 022};

class Writer {
 public:
  Writer(View& view, NodeId memory) : view_(view), memory_(memory) {}

  Status Save(const std::string& path, const std::string& content) {
    ASSIGN_OR_RETURN(const auto place, PlaceOf(path));
    if (const auto found = view_.Lookup(place.first, place.second); found.ok()) {
      ASSIGN_OR_RETURN(const auto opened, view_.Open(found->id, O_WRONLY | O_TRUNC, kUser));
      return WriteAndClose(opened.handle, 0, content);
    }
    ASSIGN_OR_RETURN(const auto made,
                     view_.Create(place.first, place.second, 0644, O_WRONLY, kUser));
    return WriteAndClose(made.opened.handle, 0, content);
  }
  // In two saves, so that the second one stores the end of the content only.
  Status SaveAndAppend(const std::string& path, const std::string& content, size_t first) {
    TRY(Save(path, content.substr(0, first)));
    ASSIGN_OR_RETURN(const auto place, PlaceOf(path));
    ASSIGN_OR_RETURN(const auto node, view_.Lookup(place.first, place.second));
    ASSIGN_OR_RETURN(const auto opened, view_.Open(node.id, O_WRONLY, kUser));
    return WriteAndClose(opened.handle, first, content.substr(first));
  }
  Result<std::pair<NodeId, std::string>> PlaceOf(const std::string& path) {
    const size_t slash = path.find('/');
    if (slash == std::string::npos) return std::pair(memory_, path);
    ASSIGN_OR_RETURN(const auto directory, view_.Lookup(memory_, path.substr(0, slash)));
    return std::pair(directory.id, path.substr(slash + 1));
  }

 private:
  Status WriteAndClose(memoirfs::vfs::HandleId handle, uint64_t offset,
                       const std::string& content) {
    constexpr size_t kPiece = 128 * 1024;
    for (size_t done = 0; done < content.size(); done += kPiece) {
      TRY(view_.Write(handle, offset + done, content.substr(done, kPiece), false, kUser));
    }
    TRY(view_.Flush(handle));
    return view_.Release(handle);
  }

  View& view_;
  const NodeId memory_;
};

Status Fill(View& view, NodeId memory) {
  using namespace memoirfs::golden;  // NOLINT: a tool of the tests
  Writer writer(view, memory);
  TRY(view.MakeDirectory(memory, "notes", 0755, kUser));
  TRY(writer.Save("MEMORY.md", kFirstVersion));
  for (const auto& [path, content] : Files()) {
    TRY(path == "notes/long.log" ? writer.SaveAndAppend(path, content, 20'000)
                                 : writer.Save(path, content));
  }
  ASSIGN_OR_RETURN(const auto main, view.Lookup(memory, "MEMORY.md"));
  TRY(view.SetXattr(main.id, kXattr, kXattrValue, 0, kUser));
  TRY(view.MakeSymlink(memory, kSymlink, kSymlinkTarget, kUser));
  ASSIGN_OR_RETURN(const auto place, writer.PlaceOf("notes/a.md"));
  ASSIGN_OR_RETURN(const auto linked, view.Lookup(place.first, place.second));
  TRY(view.MakeLink(linked.id, place.first, "same.md", kUser));
  TRY(writer.Save("old", "renamed over\n"));
  TRY(writer.Save("gone", "removed\n"));
  TRY(view.Unlink(memory, "gone", kUser));
  return view.Rename(memory, "old", memory, "empty.old", memoirfs::volume::RenameMode::kNoReplace,
                     kUser);
}

Status Make(const std::filesystem::path& directory) {
  using namespace memoirfs;  // NOLINT: a tool of the tests
  const std::string store = directory / "clean";
  volume::VolumeOptions options;
  options.background = false;
  options.journal.file_size = 1U << 20;
  options.journal.reserve = 128U << 10;
  TRY(volume::InitStore(store, options));
  ASSIGN_OR_RETURN(const auto io, OpenRealIo(store));
  ASSIGN_OR_RETURN(const auto volume, volume::Volume::Open(*io, Clock::Real(), options));
  ASSIGN_OR_RETURN(const auto agent, volume->AddAgent(golden::kAgent, kUser.uid, kUser.gid));
  TRY(volume->AddAgent(golden::kRemovedAgent, kUser.uid, kUser.gid));
  TRY(volume->RemoveAgent(golden::kRemovedAgent, /*purge=*/false));
  vfs::Vfs vfs(*volume, {.background = false});
  ASSIGN_OR_RETURN(const auto view, vfs.OpenView({}, nullptr));
  const NodeId memory = vfs::RealNode(agent.stream, kRootInode);
  TRY(Fill(*view, memory));
  TRY(volume->RunCommitterOnce());
  ASSIGN_OR_RETURN(const auto created,
                   view->Create(memory, golden::kUncommitted, 0644, O_WRONLY, kUser));
  std::filesystem::copy(store, directory / "killed", std::filesystem::copy_options::recursive);
  return view->Release(created.opened.handle);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_store DIRECTORY\n", stderr);
    return EXIT_FAILURE;
  }
  const Status status = Make(argv[1]);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
