#include "store/chain/segment_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/base/json.h"
#include "store/chain/record_format.h"
#include "store/chain/segment.h"

namespace memoirfs::chain {
namespace {

constexpr size_t kReadBlock = 64U << 10;
constexpr std::string_view kSuffix = ".jsonl";

std::string SegmentName(uint64_t number) { return fmt::format("{:06}{}", number, kSuffix); }

// Other files in the directory are not ours to judge.
std::optional<uint64_t> NumberOfName(const std::string& name) {
  uint64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  if (number == 0 || SegmentName(number) != name) return std::nullopt;
  return number;
}

}  // namespace

std::string ChainDirectory(StreamId stream) {
  return fmt::format("{}/{}", kChainsDirectory, stream.value);
}

std::optional<StreamId> StreamOfName(const std::string& name) {
  const StreamId stream(static_cast<uint32_t>(std::strtoul(name.c_str(), nullptr, 10)));
  if (std::to_string(stream.value) != name) return std::nullopt;
  return stream;
}

Result<std::vector<StreamId>> ListChains(FileIo& io) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, io.List(kChainsDirectory));
  std::vector<StreamId> streams;
  for (const std::string& name : names) {
    if (const auto stream = StreamOfName(name)) streams.push_back(*stream);
  }
  return streams;
}

std::string SegmentPath(StreamId stream, uint64_t number) {
  return ChainDirectory(stream) + "/" + SegmentName(number);
}

Result<std::vector<uint64_t>> ListSegments(FileIo& io, StreamId stream) {
  const Result<std::vector<std::string>> names = io.List(ChainDirectory(stream));
  if (names.code() == Code::kNotFound) return std::vector<uint64_t>();
  if (!names.ok()) return names.status();
  std::vector<uint64_t> numbers;
  for (const std::string& name : *names) {
    if (const std::optional<uint64_t> number = NumberOfName(name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == i + 1) continue;
    return Status(Code::kCorrupt, SegmentPath(stream, i + 1) + " is missing; later segments exist");
  }
  return numbers;
}

Result<Head> DeclaredHead(std::string_view line) {
  const Result<Json> record = ParseJson(line, kMaxRecordDepth);
  if (!record.ok()) return Status(Code::kCorrupt, record.status().message());
  try {
    const Result<Digest> hash =
        Digest::FromHex(record->at("integrity").at("hash").get_ref<const std::string&>());
    const Result<Nanos> ts = ParseRfc3339(record->at("ts").get_ref<const std::string&>());
    const Json& seq = record->at("fs").at("seq");
    if (hash.ok() && ts.ok() && seq.is_number_unsigned()) {
      return Head{Seq(seq.get<uint64_t>()), *hash, *ts};
    }
  } catch (const Json::exception&) {  // a member is missing, or of another type
  }
  return Status(Code::kCorrupt, "not a record: no valid fs.seq, integrity.hash or ts");
}

LineReader::LineReader(std::unique_ptr<File> file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

Result<LineReader> LineReader::Open(FileIo& io, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, io.Open(path, OpenMode::kRead));
  return LineReader(std::move(file), path);
}

Result<bool> LineReader::Next(std::string_view* line) {
  size_t searched = start_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != buffer_.npos) {
      *line = std::string_view(buffer_).substr(start_, end - start_);
      start_ = end + 1;
      return true;
    }
    buffer_.erase(0, start_);
    start_ = 0;
    searched = buffer_.size();
    if (searched > kMaxRecordBytes) {
      return Status(Code::kCorrupt, path_ + ": a line longer than any record");
    }
    ASSIGN_OR_RETURN(const Bytes more, file_->ReadAt(offset_, kReadBlock));
    if (more.empty()) return false;
    offset_ += more.size();
    buffer_ += more;
  }
}

}  // namespace memoirfs::chain
