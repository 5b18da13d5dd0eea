#include "store/journal/replay.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "store/base/coding.h"
#include "store/journal/journal.h"
#include "store/journal/pack.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

// What a journal says of the one before it.
struct Testimony {
  Lsn durable;                           // the greatest durable_upto of its frames
  std::optional<uint64_t> previous_end;  // by its first frame
};

Result<ScanResult> ScanJournal(FileIo& io, uint64_t number, Lsn durable,
                               const FrameVisitor& visit) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, io.Open(JournalPath(number), OpenMode::kRead));
  return ScanFrames(*file, PackId{number}, 0, visit, {.durable = durable});
}

Result<Testimony> Hear(FileIo& io, uint64_t number) {
  Testimony testimony;
  const auto listen = [&](const FrameHeader& header, const Location& where, ByteView payload) {
    if (where.offset != 0 || header.type != FrameType::kMark) return Status();
    Decoder in(payload);
    const uint64_t previous_end = in.U64();
    if (in.Done()) testimony.previous_end = previous_end;
    return Status();
  };
  ASSIGN_OR_RETURN(const ScanResult scan, ScanJournal(io, number, {}, listen));
  testimony.durable = scan.durable_upto;
  return testimony;
}

// What is said of each journal by those behind it. The last one has no witness, nor has the end of
// one whose number the next does not follow.
Result<std::vector<Testimony>> HearAll(FileIo& io, const std::vector<uint64_t>& numbers) {
  std::vector<Testimony> said(numbers.size());
  for (size_t i = numbers.size(); i > 1; --i) {
    ASSIGN_OR_RETURN(Testimony testimony, Hear(io, numbers[i - 1]));
    testimony.durable = std::max(testimony.durable, said[i - 1].durable);
    if (numbers[i - 1] != numbers[i - 2] + 1) testimony.previous_end.reset();
    said[i - 2] = testimony;
  }
  return said;
}

// How far `number` was durable by what the later journals say. Where its frames end by the next
// one is more exact than "all of it".
Lsn DurableOf(uint64_t number, const Testimony& said) {
  if (!said.previous_end.has_value()) return said.durable;
  return std::min(said.durable, Lsn{number, *said.previous_end});
}

bool LacksItsEnd(const ScanResult& scan, const Testimony& said) {
  return said.previous_end.has_value() ? scan.good_end < *said.previous_end : scan.torn_tail;
}

Result<JournalFinding> CutOff(FileIo& io, uint64_t number) {
  const auto ignore = [](const FrameHeader&, const Location&, ByteView) { return Status(); };
  ASSIGN_OR_RETURN(const ScanResult scan, ScanJournal(io, number, {}, ignore));
  JournalFinding finding{number, {}, true};
  finding.scan.tail_end = scan.tail_end;
  finding.scan.torn_tail = scan.tail_end > 0;
  return finding;
}

}  // namespace

Result<std::vector<uint64_t>> ListJournals(FileIo& io) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, io.List(kJournalDirectory));
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    const uint64_t number = std::strtoull(name.c_str(), nullptr, 10);
    if (JournalPath(number) == std::string(kJournalDirectory) + "/" + name) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

Result<std::vector<JournalFinding>> ReplayJournals(FileIo& io, Lsn from,
                                                   const FrameVisitor& visit) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListJournals(io));
  ASSIGN_OR_RETURN(const std::vector<Testimony> said, HearAll(io, numbers));
  const auto visit_behind = [&](const FrameHeader& header, const Location& where,
                                ByteView payload) {
    if (PlaceIn(where.pack, where.offset) < from) return Status();
    return visit(header, where, payload);
  };
  std::vector<JournalFinding> findings;
  bool cut_off = false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    JournalFinding& finding = findings.emplace_back();
    if (cut_off) {
      ASSIGN_OR_RETURN(finding, CutOff(io, numbers[i]));
      continue;
    }
    finding.number = numbers[i];
    const Lsn durable = DurableOf(numbers[i], said[i]);
    ASSIGN_OR_RETURN(finding.scan, ScanJournal(io, numbers[i], durable, visit_behind));
    cut_off = LacksItsEnd(finding.scan, said[i]);
  }
  return findings;
}

Status CarryJournals(FileIo& io, const std::vector<JournalFinding>& findings) {
  const auto carry = [&io](const JournalFinding& finding) {
    return CarryIntoPack(io, finding.number, finding.scan.good_end);
  };
  for (auto newest = findings.rbegin(); newest != findings.rend() && newest->cut_off; ++newest) {
    TRY(carry(*newest));
  }
  for (auto oldest = findings.begin(); oldest != findings.end() && !oldest->cut_off; ++oldest) {
    TRY(carry(*oldest));
  }
  return {};
}

}  // namespace memoirfs::journal
