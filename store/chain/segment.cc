#include "store/chain/segment.h"

#include <algorithm>
#include <utility>

#include "store/chain/segment_files.h"

namespace memoirfs::chain {
namespace {

constexpr uint64_t kSearchBlock = 64U << 10;

// Where the line that ends at `end` begins: the offset behind the last '\n' before it.
Result<uint64_t> StartOfLine(const File& file, uint64_t end) {
  while (end > 0) {
    const uint64_t begin = end - std::min(end, kSearchBlock);
    ASSIGN_OR_RETURN(const Bytes block, file.ReadAt(begin, end - begin));
    if (const size_t at = block.rfind('\n'); at != block.npos) return begin + at + 1;
    end = begin;
  }
  return 0;
}

Status EnsureDirectory(FileIo& io, const std::string& path) {
  const Status made = io.MakeDirectory(path);
  return made.code() == Code::kExists ? Status() : made;
}

// The last complete line. `size` is the end of it, behind its '\n'.
Result<std::string> ReadLastLine(const File& file, uint64_t size) {
  const uint64_t line_end = size - 1;
  ASSIGN_OR_RETURN(const uint64_t begin, StartOfLine(file, line_end));
  if (line_end - begin > kMaxRecordBytes) {
    return Status(Code::kCorrupt, "the last line is longer than any record");
  }
  return file.ReadAt(begin, line_end - begin);
}

// What the last complete line declares.
Result<Head> ReadLastHead(const File& file, uint64_t size) {
  ASSIGN_OR_RETURN(const std::string line, ReadLastLine(file, size));
  return DeclaredHead(line);
}

}  // namespace

class SegmentWriter::Impl {
 public:
  Impl(FileIo& io, StreamId stream, SegmentOptions options)
      : io_(io), stream_(stream), options_(options) {}

  Status Open(uint64_t* cut_bytes, std::optional<Seq> next) {
    TRY(EnsureDirectory(io_, ParentOf(ChainDirectory(stream_))));
    TRY(EnsureDirectory(io_, ChainDirectory(stream_)));
    ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListSegments(io_, stream_));
    if (numbers.empty()) return StartSegment(1);
    number_ = numbers.back();
    ASSIGN_OR_RETURN(file_, io_.Open(Path(), OpenMode::kReadWrite));
    ASSIGN_OR_RETURN(const uint64_t size, file_->Size());
    ASSIGN_OR_RETURN(size_, StartOfLine(*file_, size));
    const Status end = ReadHead();
    if (next && (!end.ok() || head_.seq >= *next)) {
      TRY(FindEndBefore(*next));
    } else {
      TRY(end);
    }
    if (cut_bytes != nullptr) *cut_bytes = size - size_;
    return size == size_ ? Status() : file_->Truncate(size_);
  }

  const Head& head() const { return head_; }

  Status Append(const SealedRecord& record) {
    TRY(failure_);
    if (record.seq.value != head_.seq.value + 1) {
      return Status(Code::kInternal, Path() + ": record " + std::to_string(record.seq.value) +
                                         " does not follow " + std::to_string(head_.seq.value));
    }
    if (size_ >= options_.roll_bytes) {
      TRY(Sync());
      TRY(StartSegment(number_ + 1));
    }
    const Status written = file_->WriteAt(size_, record.line + '\n');
    if (!written.ok()) {
      // Some of the line may be there, and must not stand before the next one.
      failure_ = file_->Truncate(size_);
      return written;
    }
    size_ += record.line.size() + 1;
    head_ = Head{record.seq, record.hash, record.ts};
    return {};
  }

  Status Sync() {
    TRY(failure_);
    // A failed sync may have lost what was written, whatever the reason; a second one would not say
    // so. It is no shortage that passes.
    const Status synced = SyncAll();
    if (!synced.ok()) failure_ = Status(Code::kIo, synced.ToString());
    return failure_;
  }

 private:
  std::string Path() const { return SegmentPath(stream_, number_); }

  Status SyncAll() {
    TRY(file_->DataSync());
    if (names_are_durable_) return {};
    const std::string directory = ChainDirectory(stream_);
    TRY(io_.SyncDirectory(directory));
    TRY(io_.SyncDirectory(ParentOf(directory)));
    TRY(io_.SyncDirectory("."));
    names_are_durable_ = true;
    return {};
  }

  Status StartSegment(uint64_t number) {
    ASSIGN_OR_RETURN(file_, io_.Open(SegmentPath(stream_, number), OpenMode::kCreate));
    number_ = number;
    size_ = 0;
    names_are_durable_ = false;
    return {};
  }

  // Sets size_ and head_ to where the lines before `next` end. Only the last segment can hold lines
  // that were not synced.
  Status FindEndBefore(Seq next) {
    size_ = 0;
    head_ = Head{};
    TRY(ReadHead());
    ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(io_, Path()));
    while (head_.seq.value + 1 < next.value) {
      std::string_view line;
      ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
      if (!more) return {};
      const Result<Head> head = DeclaredHead(line);
      if (!head.ok()) return head.status().WithContext(Path());
      head_ = *head;
      size_ += line.size() + 1;
    }
    return {};
  }

  // Of the last segment that has a line: the last one may be new.
  Status ReadHead() {
    if (size_ > 0) return HeadFrom(*file_, size_, Path());
    for (uint64_t number = number_ - 1; number > 0; --number) {
      const std::string path = SegmentPath(stream_, number);
      ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io_.Open(path, OpenMode::kRead));
      ASSIGN_OR_RETURN(const uint64_t size, file->Size());
      if (size > 0) return HeadFrom(*file, size, path);
    }
    return {};
  }

  Status HeadFrom(const File& file, uint64_t size, const std::string& path) {
    const Result<Head> head = ReadLastHead(file, size);
    if (!head.ok()) return head.status().WithContext(path + ": end of the chain");
    head_ = *head;
    return {};
  }

  FileIo& io_;
  const StreamId stream_;
  const SegmentOptions options_;
  uint64_t number_ = 0;             // of the segment that is written
  std::unique_ptr<File> file_;      // that segment
  uint64_t size_ = 0;               // its complete lines
  bool names_are_durable_ = false;  // not known of what an earlier run made
  Head head_;
  Status failure_;  // sticky: what is in the file is not known
};

Result<std::string> LastSegment(FileIo& io, StreamId stream) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListSegments(io, stream));
  if (numbers.empty()) return Status(Code::kNotFound, ChainDirectory(stream) + " has no segment");
  return SegmentPath(stream, numbers.back());
}

Result<ChainEnd> FindEnd(FileIo& io, StreamId stream) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListSegments(io, stream));
  ChainEnd end;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    const std::string path = SegmentPath(stream, *number);
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(path, OpenMode::kRead));
    ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    ASSIGN_OR_RETURN(const uint64_t lines_end, StartOfLine(*file, size));
    if (number == numbers.rbegin()) end.unfinished = size - lines_end;
    if (lines_end == 0) continue;  // a new one, or one with nothing but an unfinished line
    Result<std::string> line = ReadLastLine(*file, lines_end);
    if (!line.ok()) return line.status().WithContext(path);
    end.last_line = *std::move(line);
    return end;
  }
  return end;
}

SegmentWriter::SegmentWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SegmentWriter::~SegmentWriter() = default;

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::Open(FileIo& io, StreamId stream,
                                                           SegmentOptions options,
                                                           uint64_t* cut_bytes,
                                                           std::optional<Seq> next) {
  if (cut_bytes != nullptr) *cut_bytes = 0;
  auto impl = std::make_unique<Impl>(io, stream, options);
  const Status opened = impl->Open(cut_bytes, next);
  if (!opened.ok()) return opened.WithContext("chain of stream " + std::to_string(stream.value));
  return std::unique_ptr<SegmentWriter>(new SegmentWriter(std::move(impl)));
}

const Head& SegmentWriter::head() const { return impl_->head(); }
Status SegmentWriter::Append(const SealedRecord& record) { return impl_->Append(record); }
Status SegmentWriter::Sync() { return impl_->Sync(); }

}  // namespace memoirfs::chain
