#pragma once

// A stream's chain as text: chains/<stream>/<n>.jsonl, one record a line; concatenated in order
// they are the chain. They hold durable records only, so a segment is never longer than the
// journal; after a crash it may be shorter, and its last line may be torn.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/base/file_io.h"
#include "store/chain/record.h"

namespace memoirfs::chain {

struct SegmentOptions {
  uint64_t roll_bytes = 16ULL << 20;  // a segment that has grown beyond it is followed by a new one
};

inline constexpr char kChainsDirectory[] = "chains";

std::string ChainDirectory(StreamId stream);
// Of a name in chains/; nullopt for one that is no stream's.
std::optional<StreamId> StreamOfName(const std::string& name);
// The streams that have a directory in chains/.
Result<std::vector<StreamId>> ListChains(FileIo& io);

// Appends lines. Not thread-safe: the committer owns it.
class SegmentWriter {
 public:
  // Opens the last segment, cutting an unfinished last line (reported in `*cut_bytes`, which may
  // be null), and reads where it ends.
  //
  // With `next`, the caller is about to append the records from `next` on; lines of them that are
  // there already were not known to be synced, and are cut. A power cut leaves any mixture of such
  // lines, and after a failed sync even good ones are in the page cache alone. Lines before `next`
  // are never touched.
  static Result<std::unique_ptr<SegmentWriter>> Open(FileIo& io, StreamId stream,
                                                     SegmentOptions options, uint64_t* cut_bytes,
                                                     std::optional<Seq> next = {});
  ~SegmentWriter();

  // The last complete record in the segments (seq 0 when there is none; its hash is as declared).
  const Head& head() const;
  // Precondition: record.seq follows head().
  Status Append(const SealedRecord& record);
  Status Sync();

 private:
  class Impl;
  explicit SegmentWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The path of the last segment; kNotFound when there is none.
Result<std::string> LastSegment(FileIo& io, StreamId stream);
// Every line of the chain in order, without '\n'. A failure of the visitor ends it.
using LineVisitor = std::function<Status(uint64_t line_number, std::string_view line)>;
Status ForEachLine(FileIo& io, StreamId stream, const LineVisitor& visit);
// Lines from record `from` on. Lines carry their seq, so earlier segments are skipped unread.
Status ForEachLineFrom(FileIo& io, StreamId stream, Seq from, const LineVisitor& visit);
// Where a chain's files end.
struct ChainEnd {
  std::string last_line;    // the last complete line, without '\n'; empty when there is none
  uint64_t unfinished = 0;  // bytes behind it in the last segment
};
Result<ChainEnd> FindEnd(FileIo& io, StreamId stream);
// The line of one record; kNotFound.
Result<std::string> FindLine(FileIo& io, StreamId stream, Seq seq);

}  // namespace memoirfs::chain
