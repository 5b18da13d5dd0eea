#include "store/meta/log_check.h"

#include "store/base/coding.h"

namespace memoirfs::meta {
namespace {

// LevelDB's log format: blocks of 32 KiB; a record is a masked CRC-32C of type and payload (4
// bytes), the payload's length (2), the type (1), the payload. Integers are little-endian.
constexpr uint64_t kBlockSize = 32 * 1024;
constexpr size_t kHeaderSize = 7;
constexpr size_t kLengthAt = 4;
constexpr size_t kTypeAt = 6;
constexpr uint32_t kMaskDelta = 0xa282ead8;

uint32_t ByteAt(ByteView bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint32_t UnmaskedCrc(ByteView header) {
  uint32_t masked = 0;
  for (size_t i = 4; i > 0; --i) masked = masked << 8 | ByteAt(header, i - 1);
  const uint32_t rotated = masked - kMaskDelta;
  return rotated >> 17 | rotated << 15;
}

// Whether the checksum of the record at the start of `bytes` fits for some length.
bool FitsSomeLength(ByteView bytes) {
  const uint32_t crc = UnmaskedCrc(bytes);
  for (size_t end = kHeaderSize; end <= bytes.size(); ++end) {
    if (Crc32c(bytes.substr(kTypeAt, end - kTypeAt)) == crc) return true;
  }
  return false;
}

bool IsLogOrManifest(std::string_view name) {
  constexpr std::string_view kSuffix = ".log";
  constexpr std::string_view kPrefix = "MANIFEST-";
  return name.substr(0, kPrefix.size()) == kPrefix ||
         (name.size() > kSuffix.size() && name.substr(name.size() - kSuffix.size()) == kSuffix);
}

Status CheckLogTail(FileIo& io, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(path, OpenMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  // In a full block LevelDB itself reports a record that runs past its end.
  ASSIGN_OR_RETURN(const Bytes block, file->ReadAt(size - size % kBlockSize, size % kBlockSize));
  ByteView rest = block;
  while (rest.size() >= kHeaderSize) {
    const size_t length = ByteAt(rest, kLengthAt) | ByteAt(rest, kLengthAt + 1) << 8;
    if (length > rest.size() - kHeaderSize) {
      if (!FitsSomeLength(rest)) return {};  // its writer was stopped
      return Status(Code::kCorrupt, path + ": the length of the record at offset " +
                                        std::to_string(size - rest.size()) + " is damaged");
    }
    rest.remove_prefix(kHeaderSize + length);
  }
  return {};
}

}  // namespace

Status CheckLogTails(FileIo& io, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, io.List(directory));
  for (const std::string& name : names) {
    if (IsLogOrManifest(name)) TRY(CheckLogTail(io, directory + "/" + name));
  }
  return {};
}

}  // namespace memoirfs::meta
