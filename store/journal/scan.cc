#include "store/journal/scan.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "store/base/coding.h"
#include "store/journal/footer.h"

// How a gap is judged. A gap starts at an offset where a frame should be and none is. It is damage
// when something says that this offset was synced: the caller, or a frame behind the gap whose
// durable_upto lies beyond. Then what was proven durable is missing, and the scan goes on behind
// the gap, yet never past the proven point in one step: what lies beyond it must prove itself.
// Everything else is a torn tail, and frames behind it do not count: they may have reached the disk
// without what was written before them.
//
// Frames found by searching are accepted only when their epoch belongs to the frames before the
// gap. Content that imitates frames lies in payloads, which are stepped over whole as long as their
// header is good; where it is not, such content would have to name the epoch as well.

namespace memoirfs::journal {
namespace {

constexpr uint64_t kPiece = 4 << 20;

bool AllZero(ByteView bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// A part of the file in memory, read in big pieces.
class Window {
 public:
  Window(File& file, uint64_t end) : file_(file), end_(end) {}

  // The bytes from `offset` on: `size` of them, fewer only where the range ends. Valid until the
  // next call.
  Result<ByteView> View(uint64_t offset, uint64_t size) {
    size = offset >= end_ ? 0 : std::min(size, end_ - offset);
    if (offset < start_ || offset + size > start_ + bytes_.size()) {
      const uint64_t piece = std::min(std::max(size, kPiece), end_ - offset);
      ASSIGN_OR_RETURN(bytes_, file_.ReadAt(offset, piece));
      start_ = offset;
      size = std::min<uint64_t>(size, bytes_.size());
    }
    return ByteView(bytes_).substr(offset - start_, size);
  }

  // As View, but with everything behind it that is in memory anyway.
  Result<ByteView> ViewAhead(uint64_t offset, uint64_t at_least) {
    ASSIGN_OR_RETURN(const ByteView view, View(offset, at_least));
    return view.empty() ? view : ByteView(bytes_).substr(offset - start_);
  }

 private:
  File& file_;
  const uint64_t end_;
  uint64_t start_ = 0;
  Bytes bytes_;
};

// What stands at an offset where a frame should start.
struct Probe {
  uint64_t offset = 0;
  bool header_valid = false;
  bool good = false;
  FrameHeader header;
  ByteView payload;  // valid until the next probe

  uint64_t end() const { return offset + header.Footprint(); }
};

class Scanner {
 public:
  Scanner(File& file, PackId pack, uint64_t from, uint64_t end, Lsn durable,
          const FrameVisitor& visit)
      : pack_(pack),
        end_(end),
        visit_(visit),
        window_(file, end),
        position_(from),
        proven_(durable) {}

  Result<ScanResult> Run() {
    bool more = true;
    while (more) {
      TRY(CountFrames());
      ASSIGN_OR_RETURN(more, StepOverGap());
    }
    TRY(JudgeTail());
    return std::move(result_);
  }

 private:
  using Offset = std::optional<uint64_t>;

  Lsn Place(uint64_t offset) const { return PlaceIn(pack_, offset); }

  Result<Probe> ProbeAt(uint64_t offset);
  Result<bool> HeaderAt(uint64_t offset, FrameHeader& header);
  // Whether a frame found by searching can follow the gap that starts at position_.
  bool Belongs(const FrameHeader& header) const;

  Status CountFrames();
  Result<bool> StepOverGap();
  Result<bool> FindProof(const Probe& bad);
  Result<Offset> FrameBehind(const Probe& bad);
  Result<Offset> Search(uint64_t from);
  uint64_t GapEnd(const Offset& next) const;
  Status FindTailEnd();
  Status JudgeTail();

  const PackId pack_;
  const uint64_t end_;
  const FrameVisitor& visit_;
  Window window_;
  uint64_t position_;
  Lsn proven_;       // everything before it was synced
  Offset tail_end_;  // behind the last byte that is not zero, once it was looked for
  ScanResult result_;
};

Result<bool> Scanner::HeaderAt(uint64_t offset, FrameHeader& header) {
  ASSIGN_OR_RETURN(const ByteView raw, window_.View(offset, FrameHeader::kSize));
  Result<FrameHeader> decoded = FrameHeader::Decode(raw);
  if (!decoded.ok()) return false;
  header = *decoded;
  return header.pack == pack_.Encode() && header.offset == offset &&
         header.Footprint() <= end_ - offset && header.durable_upto <= Place(offset);
}

Result<Probe> Scanner::ProbeAt(uint64_t offset) {
  Probe probe;
  probe.offset = offset;
  ASSIGN_OR_RETURN(probe.header_valid, HeaderAt(offset, probe.header));
  if (!probe.header_valid) return probe;
  const uint64_t footprint = probe.header.Footprint();
  ASSIGN_OR_RETURN(const ByteView frame, window_.View(offset, footprint));
  if (frame.size() < footprint) return probe;  // the file shrank meanwhile
  probe.payload = frame.substr(FrameHeader::kSize, probe.header.length);
  const ByteView padding = frame.substr(FrameHeader::kSize + probe.header.length);
  probe.good = AllZero(padding) && Crc32c(probe.payload) == probe.header.payload_crc;
  return probe;
}

bool Scanner::Belongs(const FrameHeader& header) const {
  if (result_.last_epoch == 0 || header.epoch == result_.last_epoch) return true;
  if (header.epoch < result_.last_epoch) return false;
  // A later opening went on in this file. It began with a mark: a gap of just that size is the
  // damaged mark. Otherwise only a range that the caller vouches for may change its epoch unseen.
  return header.offset == position_ + FrameHeader::kSize || Place(position_) < proven_;
}

Status Scanner::CountFrames() {
  while (position_ < end_) {
    ASSIGN_OR_RETURN(const Probe probe, ProbeAt(position_));
    if (!probe.good) return {};
    const Location where{pack_, position_, probe.header.length, probe.header.type};
    TRY(visit_(probe.header, where, probe.payload));
    result_.last_epoch = probe.header.epoch;
    result_.durable_upto = std::max(result_.durable_upto, probe.header.durable_upto);
    position_ = probe.end();
  }
  return {};
}

// True when the gap at position_ was damage and position_ is behind it now.
Result<bool> Scanner::StepOverGap() {
  if (position_ >= end_) return false;
  TRY(FindTailEnd());
  ASSIGN_OR_RETURN(const Probe bad, ProbeAt(position_));
  if (Place(position_) >= proven_) {
    ASSIGN_OR_RETURN(const bool proven, FindProof(bad));
    if (!proven) return false;
  }
  ASSIGN_OR_RETURN(const Offset next, FrameBehind(bad));
  const uint64_t gap_end = GapEnd(next);
  if (gap_end <= position_) return false;
  result_.damage.push_back({position_, gap_end - position_, bad.header_valid, bad.header});
  position_ = gap_end;
  return true;
}

// Looks behind the gap for a frame that says that the gap's start was synced.
Result<bool> Scanner::FindProof(const Probe& bad) {
  ASSIGN_OR_RETURN(Offset at, FrameBehind(bad));
  while (at.has_value() && *at < end_) {
    ASSIGN_OR_RETURN(const Probe probe, ProbeAt(*at));
    if (!probe.good) {
      ASSIGN_OR_RETURN(at, FrameBehind(probe));
      continue;
    }
    if (probe.header.durable_upto > Place(position_)) {
      proven_ = probe.header.durable_upto;
      return true;
    }
    at = probe.end();
  }
  return false;
}

// Where the next frame starts behind something that is none.
Result<Scanner::Offset> Scanner::FrameBehind(const Probe& bad) {
  if (bad.header_valid) return Offset(bad.end());
  return Search(bad.offset + FrameHeader::kAlignment);
}

Result<Scanner::Offset> Scanner::Search(uint64_t from) {
  uint64_t at = from;
  while (at < *tail_end_) {
    ASSIGN_OR_RETURN(const ByteView piece, window_.ViewAhead(at, FrameHeader::kSize));
    if (piece.empty()) break;
    size_t step = 0;
    while (step < piece.size() && !piece.substr(step).starts_with(FrameHeader::kMagic)) {
      step += FrameHeader::kAlignment;
    }
    at += step;
    if (step >= piece.size()) continue;
    FrameHeader header;
    ASSIGN_OR_RETURN(const bool valid, HeaderAt(at, header));
    if (valid && Belongs(header)) {
      ASSIGN_OR_RETURN(const Probe probe, ProbeAt(at));
      if (probe.good) return Offset(at);
    }
    at += FrameHeader::kAlignment;
  }
  return Offset();
}

// Where a gap that is damage ends: at the next frame, at the latest where durability was proven to
// end; where neither is known, with the last byte that is not zero.
uint64_t Scanner::GapEnd(const Offset& next) const {
  const bool ends_here = proven_.journal == pack_.Encode();
  if (ends_here) return std::min({next.value_or(end_), proven_.offset, end_});
  return next.value_or(std::min(AlignFrame(*tail_end_), end_));
}

Status Scanner::FindTailEnd() {
  if (tail_end_.has_value()) return {};
  uint64_t last = position_;
  for (uint64_t at = position_; at < end_;) {
    ASSIGN_OR_RETURN(const ByteView piece, window_.View(at, kPiece));
    if (piece.empty()) break;
    if (!AllZero(piece)) last = at + piece.find_last_not_of('\0') + 1;
    at += piece.size();
  }
  tail_end_ = last;
  return {};
}

Status Scanner::JudgeTail() {
  result_.good_end = position_;
  result_.tail_end = std::max(position_, tail_end_.value_or(position_));
  if (result_.tail_end == position_) return {};
  ASSIGN_OR_RETURN(const ByteView start, window_.View(position_, kFooterMagic.size()));
  result_.torn_tail = start != kFooterMagic;
  return {};
}

}  // namespace

Result<ScanResult> ScanFrames(File& file, PackId pack, uint64_t from, const FrameVisitor& visit,
                              const ScanBounds& bounds) {
  if (from % FrameHeader::kAlignment != 0) {
    return Status(Code::kInvalidArgument,
                  "no frame starts at offset " + std::to_string(from) + " of " + PackPath(pack));
  }
  ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  return Scanner(file, pack, from, std::min(size, bounds.end), bounds.durable, visit).Run();
}

}  // namespace memoirfs::journal
