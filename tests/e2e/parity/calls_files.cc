// Calls that work on open files and their content. Data is written LENGTH:SEED, or =TEXT.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <stdexcept>

#include "tests/e2e/native/random.h"
#include "tests/e2e/parity/constants.h"
#include "tests/e2e/parity/content.h"
#include "tests/e2e/parity/executor.h"

namespace memoirfs::parity {
namespace {

off_t Offset(const Arguments& a, size_t index) { return static_cast<off_t>(Value(a.at(index))); }

std::string BytesRead(ssize_t result, const std::string& buffer) {
  if (result < 0) return Outcome(result);
  return Describe(std::string_view(buffer).substr(0, static_cast<size_t>(result)));
}

// read SLOT SIZE
std::string Read(Executor& executor, const Arguments& a) {
  std::string buffer(static_cast<size_t>(Value(a.at(1))), '\0');
  return BytesRead(::read(executor.Fd(a[0]), buffer.data(), buffer.size()), buffer);
}

// pread SLOT SIZE OFFSET
std::string PositionedRead(Executor& executor, const Arguments& a) {
  std::string buffer(static_cast<size_t>(Value(a.at(1))), '\0');
  const off_t offset = Offset(a, 2);
  return BytesRead(::pread(executor.Fd(a[0]), buffer.data(), buffer.size(), offset), buffer);
}

// write SLOT DATA
std::string Write(Executor& executor, const Arguments& a) {
  const std::string data = Data(a.at(1));
  return Outcome(::write(executor.Fd(a[0]), data.data(), data.size()));
}

// pwrite SLOT DATA OFFSET
std::string PositionedWrite(Executor& executor, const Arguments& a) {
  const std::string data = Data(a.at(1));
  return Outcome(::pwrite(executor.Fd(a[0]), data.data(), data.size(), Offset(a, 2)));
}

std::string Ftruncate(Executor& executor, const Arguments& a) {
  return Outcome(::ftruncate(executor.Fd(a.at(0)), Offset(a, 1)));
}

// truncate PATH SIZE. There is no truncateat: the descriptor of the root gives the path.
std::string Truncate(Executor& executor, const Arguments& a) {
  const std::string path =
      "/proc/self/fd/" + std::to_string(executor.root()) + "/" + Expand(a.at(0));
  return Outcome(::truncate(path.c_str(), Offset(a, 1)));
}

// fallocate SLOT MODE OFFSET SIZE
std::string Fallocate(Executor& executor, const Arguments& a) {
  const int mode = static_cast<int>(Value(a.at(1)));
  return Outcome(::fallocate(executor.Fd(a[0]), mode, Offset(a, 2), Offset(a, 3)));
}

// seek SLOT OFFSET WHENCE: what a position in a listing means is the file system's affair.
std::string Seek(Executor& executor, const Arguments& a) {
  struct stat facts = {};
  if (::fstat(executor.Fd(a.at(0)), &facts) == 0 && S_ISDIR(facts.st_mode)) return "not judged";
  return Outcome(::lseek(executor.Fd(a.at(0)), Offset(a, 1), static_cast<int>(Value(a.at(2)))));
}

// Whether the bytes from `from` to `to` are all zero.
bool Zeros(int fd, off_t from, off_t to) {
  std::string buffer(1 << 16, '\0');
  while (from < to) {
    const size_t wanted = std::min<size_t>(buffer.size(), static_cast<size_t>(to - from));
    const ssize_t size = ::pread(fd, buffer.data(), wanted, from);
    if (size <= 0) return size == 0;
    const auto end = buffer.begin() + size;
    if (std::any_of(buffer.begin(), end, [](char byte) { return byte != 0; })) return false;
    from += size;
  }
  return true;
}

// What SEEK_DATA and SEEK_HOLE promise: where holes are reported is the file system's affair, but
// a hole reads as zeros, and nothing that is not zero is skipped. `fd` can be read.
std::string JudgeSeek(int fd, off_t offset, int whence, off_t found, off_t size) {
  if (found < 0) {
    if (errno != ENXIO || offset >= size) return Outcome(-1);
    return whence == SEEK_DATA && Zeros(fd, offset, size) ? "fits" : "ENXIO before the end";
  }
  if (found < offset || found > size) return "out of range";
  if (whence == SEEK_DATA) return Zeros(fd, offset, found) ? "fits" : "skips data";
  return found == size || Zeros(fd, found, std::min<off_t>(size, found + 1)) ? "fits" : "no hole";
}

// sparse SLOT OFFSET SEEK_DATA|SEEK_HOLE: the position stays where it was.
std::string Sparse(Executor& executor, const Arguments& a) {
  const int fd = executor.Fd(a.at(0));
  const off_t position = ::lseek(fd, 0, SEEK_CUR);
  struct stat facts = {};
  if (position < 0 || ::fstat(fd, &facts) != 0) return Outcome(-1);
  if (!S_ISREG(facts.st_mode) || facts.st_size > kWholeContent) return "not judged";
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int whence = static_cast<int>(Value(a.at(2)));
  const off_t found = ::lseek(fd, Offset(a, 1), whence);
  std::string verdict = reader.valid() || found < 0
                            ? JudgeSeek(reader.get(), Offset(a, 1), whence, found, facts.st_size)
                            : "not judged";
  ::lseek(fd, position, SEEK_SET);
  return verdict;
}

// An offset argument of a copy: `-` is the descriptor's own position.
off_t* Position(const std::string& argument, off_t* place) {
  if (argument == "-") return nullptr;
  *place = static_cast<off_t>(Value(argument));
  return place;
}

// copy FROM-SLOT OFFSET TO-SLOT OFFSET SIZE [FLAGS]
std::string Copy(Executor& executor, const Arguments& a) {
  off_t in = 0;
  off_t out = 0;
  const unsigned flags = a.size() > 5 ? static_cast<unsigned>(Value(a[5])) : 0;
  return Outcome(::copy_file_range(executor.Fd(a.at(0)), Position(a.at(1), &in),
                                   executor.Fd(a.at(2)), Position(a.at(3), &out),
                                   static_cast<size_t>(Value(a.at(4))), flags));
}

// sendfile FROM-SLOT TO-SLOT SIZE
std::string Send(Executor& executor, const Arguments& a) {
  return Outcome(::sendfile(executor.Fd(a.at(1)), executor.Fd(a.at(0)), nullptr,
                            static_cast<size_t>(Value(a.at(2)))));
}

std::string Fsync(Executor& executor, const Arguments& a) {
  return Outcome(::fsync(executor.Fd(a.at(0))));
}

std::string Fdatasync(Executor& executor, const Arguments& a) {
  return Outcome(::fdatasync(executor.Fd(a.at(0))));
}

std::string Lock(Executor& executor, const Arguments& a) {
  return Outcome(::flock(executor.Fd(a.at(0)), static_cast<int>(Value(a.at(1))) | LOCK_NB));
}

// install FILE PATH: copies a program of the machine.
std::string Install(Executor& executor, const Arguments& a) {
  const UniqueFd from(::open(a.at(0).c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd to(::openat(executor.root(), Expand(a.at(1)).c_str(),
                             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
  struct stat facts = {};
  if (!from.valid() || !to.valid() || ::fstat(from.get(), &facts) != 0) return Outcome(-1);
  off_t offset = 0;
  while (offset < facts.st_size) {
    const size_t rest = static_cast<size_t>(facts.st_size - offset);
    if (::sendfile(to.get(), from.get(), &offset, rest) <= 0) return Outcome(-1);
  }
  return "0";
}

}  // namespace

const Calls& FileCalls() {
  static const Calls calls = {
      {"read", Read},           {"pread", PositionedRead}, {"write", Write},
      {"ftruncate", Ftruncate}, {"truncate", Truncate},    {"pwrite", PositionedWrite},
      {"seek", Seek},           {"sparse", Sparse},        {"fallocate", Fallocate},
      {"copy", Copy},           {"sendfile", Send},        {"fsync", Fsync},
      {"flock", Lock},          {"install", Install},      {"fdatasync", Fdatasync}};
  return calls;
}

}  // namespace memoirfs::parity
