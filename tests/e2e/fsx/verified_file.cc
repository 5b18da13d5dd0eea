#include "tests/e2e/fsx/verified_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

namespace memoirfs::fsx {
namespace {

void Check(bool worked, const std::string& what) {
  if (!worked) throw std::system_error(errno, std::generic_category(), what);
}

off_t Signed(size_t offset) { return static_cast<off_t>(offset); }

// A mapping of the pages around a range of a file.
class Pages {
 public:
  Pages(int fd, size_t offset, size_t size, int protection) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t start = offset / page * page;
    size_ = offset + size - start;
    address_ = ::mmap(nullptr, size_, protection, MAP_SHARED, fd, Signed(start));
    Check(address_ != MAP_FAILED, "mmap");
    bytes_ = static_cast<char*>(address_) + (offset - start);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(address_, size_); }

  char* bytes() const { return bytes_; }
  void Sync() const { Check(::msync(address_, size_, MS_SYNC) == 0, "msync"); }

 private:
  void* address_;
  char* bytes_;
  size_t size_;
};

std::string Hex(const char* bytes, size_t size) {
  std::string text;
  char two[4];
  for (size_t i = 0; i < size; ++i) {
    std::snprintf(two, sizeof two, "%02x ", static_cast<unsigned char>(bytes[i]));
    text += two;
  }
  return text;
}

}  // namespace

VerifiedFile::VerifiedFile(std::string path) : path_(std::move(path)) {}

void VerifiedFile::Open(int flags) {
  constexpr mode_t kMode = 0644;
  fd_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, kMode));
  Check(fd_.valid(), "open " + path_);
  flags_ = flags;
  if ((flags & O_TRUNC) != 0) model_.clear();
  CheckSize();
}

void VerifiedFile::Close() { fd_.Reset(); }

void VerifiedFile::CheckSize() const {
  struct stat facts = {};
  Check(::fstat(fd_.get(), &facts) == 0, "fstat");
  if (facts.st_size != Signed(model_.size())) {
    throw Mismatch("size of " + path_ + ": expected " + std::to_string(model_.size()) + ", got " +
                   std::to_string(facts.st_size));
  }
}

void VerifiedFile::Compare(size_t offset, const char* bytes, size_t size) const {
  if (std::memcmp(model_.data() + offset, bytes, size) == 0) return;
  constexpr size_t kShown = 16;
  const auto first = static_cast<size_t>(
      std::mismatch(bytes, bytes + size, model_.begin() + Signed(offset)).first - bytes);
  size_t last = size;
  while (bytes[last - 1] == model_[offset + last - 1]) --last;
  const size_t shown = std::min(kShown, size - first);
  throw Mismatch("content of " + path_ + " from " + std::to_string(offset + first) + " to " +
                 std::to_string(offset + last) + ": expected " +
                 Hex(model_.data() + offset + first, shown) + ", got " + Hex(bytes + first, shown));
}

void VerifiedFile::Read(size_t offset, size_t size) const {
  std::string buffer(size, '\0');
  const ssize_t got = ::pread(fd_.get(), buffer.data(), size, Signed(offset));
  Check(got >= 0, "pread");
  const size_t rest = offset < model_.size() ? model_.size() - offset : 0;
  const size_t expected = std::min(size, rest);
  if (static_cast<size_t>(got) != expected) {
    throw Mismatch("pread of " + path_ + ": expected " + std::to_string(expected) + " bytes, got " +
                   std::to_string(got));
  }
  if (expected > 0) Compare(offset, buffer.data(), expected);
}

void VerifiedFile::Put(size_t offset, const std::string& data) {
  if (model_.size() < offset + data.size()) model_.resize(offset + data.size());
  model_.replace(offset, data.size(), data);
}

void VerifiedFile::Write(size_t offset, const std::string& data) {
  const size_t place = (flags_ & O_APPEND) != 0 ? model_.size() : offset;
  const ssize_t written = ::pwrite(fd_.get(), data.data(), data.size(), Signed(offset));
  Check(written == Signed(data.size()), "pwrite");
  if (!data.empty()) Put(place, data);
  CheckSize();
}

void VerifiedFile::Resize(size_t size, bool by_path) {
  const int result =
      by_path ? ::truncate(path_.c_str(), Signed(size)) : ::ftruncate(fd_.get(), Signed(size));
  Check(result == 0, "truncate");
  model_.resize(size);
  CheckSize();
}

void VerifiedFile::Allocate(int mode, size_t offset, size_t size) {
  Check(::fallocate(fd_.get(), mode, Signed(offset), Signed(size)) == 0, "fallocate");
  const size_t end = offset + size;
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && end > model_.size()) model_.resize(end);
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0 && offset < model_.size()) {
    const size_t zeros = std::min(size, model_.size() - offset);
    model_.replace(offset, zeros, zeros, '\0');
  }
  CheckSize();
}

void VerifiedFile::MapRead(size_t offset, size_t size) const {
  const Pages pages(fd_.get(), offset, size, PROT_READ);
  Compare(offset, pages.bytes(), size);
}

void VerifiedFile::MapWrite(size_t offset, const std::string& data, bool sync) {
  const Pages pages(fd_.get(), offset, data.size(), PROT_READ | PROT_WRITE);
  std::memcpy(pages.bytes(), data.data(), data.size());
  Put(offset, data);
  if (sync) pages.Sync();
}

void VerifiedFile::CopyFrom(const VerifiedFile& source, size_t from, size_t to, size_t size) {
  off_t in = Signed(from);
  off_t out = Signed(to);
  for (size_t rest = size; rest > 0;) {
    const ssize_t copied = ::copy_file_range(source.fd_.get(), &in, fd_.get(), &out, rest, 0);
    Check(copied >= 0, "copy_file_range");
    if (copied == 0) throw Mismatch("copy_file_range ended early in " + source.path_);
    rest -= static_cast<size_t>(copied);
  }
  Put(to, source.model_.substr(from, size));
  CheckSize();
}

void VerifiedFile::Seek(size_t offset) const {
  const off_t data = ::lseek(fd_.get(), Signed(offset), SEEK_DATA);
  Check(data >= 0 || errno == ENXIO, "lseek");
  const size_t end = data >= 0 ? static_cast<size_t>(data) : model_.size();
  const size_t skipped = model_.find_first_not_of('\0', offset);
  if (skipped < end) {
    throw Mismatch("SEEK_DATA of " + path_ + " skips data at " + std::to_string(skipped));
  }
}

void VerifiedFile::Sync(bool data_only) const {
  Check((data_only ? ::fdatasync(fd_.get()) : ::fsync(fd_.get())) == 0, "fsync");
}

void VerifiedFile::CheckAll() const {
  CheckSize();
  Read(0, model_.size() + 1);
}

void VerifiedFile::Rename(const std::string& path) {
  Check(::rename(path_.c_str(), path.c_str()) == 0, "rename");
  path_ = path;
}

void VerifiedFile::Damage(size_t offset) const {
  const char wrong = static_cast<char>(model_[offset] ^ 1);
  Check(::pwrite(fd_.get(), &wrong, 1, Signed(offset)) == 1, "pwrite");
}

}  // namespace memoirfs::fsx
