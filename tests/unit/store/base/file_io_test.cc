#include "store/base/file_io.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "store/base/log.h"
#include "store/base/regular_file.h"
#include "tests/support/temp_directory.h"

using memoirfs::Bytes;
using memoirfs::Code;
using memoirfs::File;
using memoirfs::FileIo;
using memoirfs::OpenMode;
using memoirfs::OpenRealIo;
using memoirfs::OpenRegularFile;
using memoirfs::ReadWholeFile;
using memoirfs::Result;
using memoirfs::Status;
using memoirfs::WriteFileAtomically;
using memoirfs::test::TempDirectory;

namespace {

struct Store {
  TempDirectory directory;
  std::unique_ptr<FileIo> io = OpenRealIo(directory.path()).value();

  mode_t ModeOf(const std::string& name) const {
    struct stat st {};
    REQUIRE(::lstat((directory / name).c_str(), &st) == 0);
    return st.st_mode & 07777;
  }
};

void MakeSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.copy(address.sun_path, sizeof(address.sun_path) - 1) == path.size());
  const memoirfs::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
}

void WriteOutside(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE_METHOD(Store, "files are for the owner alone, whatever the umask is") {
  const mode_t before = ::umask(0);
  REQUIRE(io->MakeDirectory("d").ok());
  REQUIRE(io->Open("d/f", OpenMode::kCreate).ok());
  REQUIRE(WriteFileAtomically(*io, "d/g", "x").ok());
  ::umask(before);
  CHECK(ModeOf("d") == 0700);
  CHECK(ModeOf("d/f") == 0600);
  CHECK(ModeOf("d/g") == 0600);
}

TEST_CASE_METHOD(Store, "a symbolic link in the store is an error and is not followed") {
  const TempDirectory outside;
  WriteOutside(outside / "secret", "s");
  REQUIRE(::symlink((outside / "secret").c_str(), (directory / "file").c_str()) == 0);
  REQUIRE(::symlink(outside.path().c_str(), (directory / "dir").c_str()) == 0);
  CHECK(io->Open("file", OpenMode::kRead).code() == Code::kCorrupt);
  CHECK(io->Open("file", OpenMode::kOpenOrCreate).code() == Code::kCorrupt);
  CHECK(io->Open("dir/secret", OpenMode::kRead).code() == Code::kLoop);
  CHECK(io->Open("dir/new", OpenMode::kCreate).code() == Code::kLoop);
  CHECK_FALSE(io->MakeDirectory("dir/new").ok());
  CHECK_FALSE(io->Remove("dir/secret").ok());
  CHECK_FALSE(io->Rename("dir/secret", "taken").ok());
  CHECK_FALSE(io->List("dir").ok());
  CHECK_FALSE(io->Stat("dir/secret").ok());
  CHECK(::access((outside / "secret").c_str(), F_OK) == 0);
}

TEST_CASE_METHOD(Store, "what is no regular file is not opened, and the message says what it is") {
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  REQUIRE(::mkdir((directory / "dir").c_str(), 0700) == 0);
  REQUIRE(::symlink("/dev/zero", (directory / "link").c_str()) == 0);
  MakeSocket(directory / "socket");
  const std::map<std::string, std::string> kinds = {{"fifo", "a FIFO"},
                                                    {"dir", "a directory"},
                                                    {"link", "a symbolic link"},
                                                    {"socket", "a socket"}};
  for (const auto& [name, kind] : kinds) {
    for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReadWrite, OpenMode::kOpenOrCreate}) {
      const Status status = io->Open(name, mode).status();
      INFO(status.ToString());
      CHECK(status.code() == Code::kCorrupt);
      CHECK(status.message() ==
            directory / name + " is " + kind + ", not a regular file: move it away");
    }
    CHECK(io->Open(name, OpenMode::kCreate).code() == Code::kExists);
    CHECK(OpenRegularFile(directory / name, O_RDWR | O_CREAT).code() == Code::kCorrupt);
  }
  CHECK(OpenRegularFile("/dev/zero", O_RDONLY).code() == Code::kCorrupt);
}

TEST_CASE_METHOD(Store, "a log does not wait for the reader of a FIFO") {
  REQUIRE(::mkfifo((directory / "log").c_str(), 0600) == 0);
  CHECK(memoirfs::LogToFile(directory / "log").code() == Code::kCorrupt);
}

TEST_CASE_METHOD(Store, "paths do not leave the store") {
  CHECK_FALSE(io->Open("../x", OpenMode::kOpenOrCreate).ok());
  CHECK_FALSE(io->Open("/etc/passwd", OpenMode::kRead).ok());
  CHECK_FALSE(io->MakeDirectory("../x").ok());
  CHECK_FALSE(io->Rename("../x", "y").ok());
}

TEST_CASE("the root itself must not be a link") {
  const TempDirectory directory;
  REQUIRE(::symlink(directory.path().c_str(), (directory / "link").c_str()) == 0);
  CHECK_FALSE(OpenRealIo(directory / "link").ok());
  CHECK(OpenRealIo(directory / "missing").code() == Code::kNotFound);
}

TEST_CASE_METHOD(Store, "open modes ask for what must and must not exist") {
  CHECK(io->Open("f", OpenMode::kRead).code() == Code::kNotFound);
  CHECK(io->Open("f", OpenMode::kReadWrite).code() == Code::kNotFound);
  CHECK(io->Open("f", OpenMode::kCreate).ok());
  CHECK(io->Open("f", OpenMode::kCreate).code() == Code::kExists);
  CHECK(io->Open("f", OpenMode::kOpenOrCreate).ok());
  const Result<std::unique_ptr<File>> read_only = io->Open("f", OpenMode::kRead);
  CHECK_FALSE((*read_only)->WriteAt(0, "x").ok());
}

TEST_CASE_METHOD(Store, "reads end where the file ends, holes read as zeros") {
  const std::unique_ptr<File> file = io->Open("f", OpenMode::kCreate).value();
  REQUIRE(file->WriteAt(3, "abc").ok());
  CHECK(file->Size().value() == 6);
  CHECK(file->ReadAt(0, 100).value() == Bytes("\0\0\0abc", 6));
  CHECK(file->ReadAt(4, 1).value() == "b");
  CHECK(file->ReadAt(6, 10).value().empty());
  REQUIRE(file->Truncate(4).ok());
  CHECK(file->ReadAt(0, 100).value() == Bytes("\0\0\0a", 4));
  CHECK(file->DataSync().ok());
  CHECK(file->Sync().ok());
}

TEST_CASE_METHOD(Store, "directories are made, listed in order and removed") {
  REQUIRE(io->MakeDirectory("d").ok());
  CHECK(io->MakeDirectory("d").code() == Code::kExists);
  for (const char* name : {"d/b", "d/a", "d/c"}) {
    REQUIRE(io->Open(name, OpenMode::kCreate).ok());
  }
  CHECK(io->List("d").value() == std::vector<std::string>{"a", "b", "c"});
  CHECK(io->List("missing").code() == Code::kNotFound);
  CHECK(io->RemoveDirectory("d").code() == Code::kNotEmpty);
  CHECK(io->Stat("d").value().is_directory);
  CHECK(io->Stat("d/a").value().size == 0);
  CHECK(io->Stat("d/x").code() == Code::kNotFound);
  CHECK(io->SyncDirectory("d").ok());
  CHECK(io->SyncDirectory(".").ok());
  for (const char* name : {"d/a", "d/b", "d/c"}) CHECK(io->Remove(name).ok());
  CHECK(io->RemoveDirectory("d").ok());
  CHECK(io->Remove("d/a").code() == Code::kNotFound);
}

TEST_CASE_METHOD(Store, "an atomic write replaces the whole file and leaves nothing else") {
  REQUIRE(WriteFileAtomically(*io, "f", "a longer text").ok());
  REQUIRE(WriteFileAtomically(*io, "f", "short").ok());
  CHECK(ReadWholeFile(*io, "f").value() == "short");
  CHECK(io->List(".").value() == std::vector<std::string>{"f"});
}

TEST_CASE_METHOD(Store, "an atomic write does not write to what has the temporary name") {
  const auto link = [&](const std::string& name) {
    return ::link((directory / "mine").c_str(), (directory / name).c_str()) == 0;
  };
  WriteOutside(directory / "mine", "mine");
  REQUIRE(link("f.tmp"));
  REQUIRE(::symlink("mine", (directory / "g.tmp").c_str()) == 0);
  REQUIRE(::mkfifo((directory / "h.tmp").c_str(), 0600) == 0);
  for (const char* name : {"f", "g", "h"}) {
    REQUIRE(WriteFileAtomically(*io, name, "new").ok());
    CHECK(ReadWholeFile(*io, name).value() == "new");
  }
  CHECK(ReadWholeFile(*io, "mine").value() == "mine");
  CHECK(io->List(".").value() == std::vector<std::string>{"f", "g", "h", "mine"});
}

TEST_CASE_METHOD(Store, "a rename replaces its target") {
  REQUIRE(WriteFileAtomically(*io, "a", "1").ok());
  REQUIRE(WriteFileAtomically(*io, "b", "2").ok());
  REQUIRE(io->Rename("a", "b").ok());
  CHECK(ReadWholeFile(*io, "b").value() == "1");
  CHECK(io->Rename("a", "b").code() == Code::kNotFound);
}

TEST_CASE_METHOD(Store, "messages name the file and the fault") {
  const std::string message = io->Open("d/f", OpenMode::kRead).status().message();
  CHECK(message.find(directory / "d/f") != message.npos);
  CHECK(message.find("No such file") != message.npos);
}

TEST_CASE_METHOD(Store, "the file system's space is reported") {
  CHECK(io->Space().value().block_size > 0);
  CHECK(io->Space().value().total_blocks >= io->Space().value().available_blocks);
}
