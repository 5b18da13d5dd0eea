#include <algorithm>

#include "store/chain/segment.h"
#include "store/chain/segment_files.h"

namespace memoirfs::chain {
namespace {

// The segments from `first` (an index) on. Lines are numbered from `line_number` + 1.
Status VisitSegments(FileIo& io, StreamId stream, const std::vector<uint64_t>& numbers,
                     size_t first, uint64_t line_number, const LineVisitor& visit) {
  for (size_t i = first; i < numbers.size(); ++i) {
    ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(io, SegmentPath(stream, numbers[i])));
    std::string_view line;
    while (true) {
      ASSIGN_OR_RETURN(const bool found, reader.Next(&line));
      if (!found) break;
      TRY(visit(++line_number, line));
    }
    // Only the last segment may end in the middle of a line: it is being written, or was cut by a
    // crash. Elsewhere that is damage, and the visitor's to see.
    const bool is_last = i + 1 == numbers.size();
    if (!is_last && !reader.unfinished().empty()) TRY(visit(++line_number, reader.unfinished()));
  }
  return {};
}

// The seq of a segment's first line; none when it is empty or damaged there.
Result<std::optional<Seq>> FirstSeq(FileIo& io, const std::string& path) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(io, path));
  std::string_view line;
  ASSIGN_OR_RETURN(const bool found, reader.Next(&line));
  if (!found) return std::optional<Seq>();
  const Result<Head> head = DeclaredHead(line);
  return head.ok() ? std::optional<Seq>(head->seq) : std::nullopt;
}

struct Start {
  size_t index = 0;           // of the segment, in the list
  uint64_t lines_before = 0;  // records in earlier segments
};

// The last segment whose first record is not after `from`. A segment that does not say where it
// begins is passed over to the left, which costs reading but is never wrong.
Result<Start> FindStart(FileIo& io, StreamId stream, const std::vector<uint64_t>& numbers,
                        Seq from) {
  Start start;
  size_t end = numbers.size();
  while (end - start.index > 1) {
    const size_t middle = start.index + (end - start.index) / 2;
    ASSIGN_OR_RETURN(const std::optional<Seq> first,
                     FirstSeq(io, SegmentPath(stream, numbers[middle])));
    if (first && *first <= from && first->value > 0) {
      start = Start{middle, first->value - 1};
    } else {
      end = middle;
    }
  }
  return start;
}

}  // namespace

Status ForEachLine(FileIo& io, StreamId stream, const LineVisitor& visit) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListSegments(io, stream));
  return VisitSegments(io, stream, numbers, 0, 0, visit);
}

Status ForEachLineFrom(FileIo& io, StreamId stream, Seq from, const LineVisitor& visit) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListSegments(io, stream));
  if (numbers.empty()) return {};
  from = std::max(from, Seq(1));
  ASSIGN_OR_RETURN(const Start start, FindStart(io, stream, numbers, from));
  // Within a segment records follow each other, so lines are counted, not parsed. Where a line is
  // missing the first one visited shows it.
  const auto from_there = [&](uint64_t number, std::string_view line) -> Status {
    if (number < from.value) return {};
    if (number == from.value) {
      const Result<Head> head = DeclaredHead(line);
      if (head.ok() && head->seq != from) {
        return Status(Code::kCorrupt, ChainDirectory(stream) + ": record " +
                                          std::to_string(head->seq.value) + " where record " +
                                          std::to_string(from.value) + " should be");
      }
    }
    return visit(number, line);
  };
  return VisitSegments(io, stream, numbers, start.index, start.lines_before, from_there);
}

Result<std::string> FindLine(FileIo& io, StreamId stream, Seq seq) {
  std::optional<std::string> found;
  const Status end_of_search(Code::kInterrupted, "found");
  const Status status =
      ForEachLineFrom(io, stream, seq, [&](uint64_t number, std::string_view line) -> Status {
        if (number == seq.value) found = std::string(line);
        return end_of_search;
      });
  if (found) return *std::move(found);
  if (!status.ok() && status.code() != Code::kInterrupted) return status;
  return Status(Code::kNotFound,
                ChainDirectory(stream) + " has no record " + std::to_string(seq.value));
}

}  // namespace memoirfs::chain
