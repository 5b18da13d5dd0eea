#include "store/chain/segment.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "tests/support/chain_samples.h"
#include "tests/support/temp_directory.h"

using memoirfs::Bytes;
using memoirfs::Code;
using memoirfs::File;
using memoirfs::FileIo;
using memoirfs::OpenMode;
using memoirfs::ReadWholeFile;
using memoirfs::Seq;
using memoirfs::Status;
using memoirfs::StreamId;
using memoirfs::chain::FindLine;
using memoirfs::chain::ForEachLine;
using memoirfs::chain::ForEachLineFrom;
using memoirfs::chain::SealedRecord;
using memoirfs::chain::SegmentOptions;
using memoirfs::chain::SegmentWriter;

namespace {

constexpr StreamId kStream{7};
constexpr char kFirst[] = "chains/7/000001.jsonl";

using Visited = std::vector<std::pair<uint64_t, std::string>>;

struct Chain {
  memoirfs::test::TempDirectory directory;
  std::unique_ptr<FileIo> io = memoirfs::OpenRealIo(directory.path()).value();
  std::vector<SealedRecord> records = memoirfs::test::SampleChain(60);

  std::unique_ptr<SegmentWriter> Open(uint64_t roll_bytes = 1ULL << 20,
                                      uint64_t* cut_bytes = nullptr) {
    return SegmentWriter::Open(*io, kStream, SegmentOptions{roll_bytes}, cut_bytes).value();
  }
  // Records [from, to), counted from 0.
  void Fill(size_t from, size_t to, uint64_t roll_bytes = 1ULL << 20) {
    const auto writer = Open(roll_bytes);
    for (size_t i = from; i < to; ++i) REQUIRE(writer->Append(records[i]).ok());
    REQUIRE(writer->Sync().ok());
  }
  std::unique_ptr<File> Segment(const std::string& path = kFirst) {
    return io->Open(path, OpenMode::kReadWrite).value();
  }
  void AppendRaw(const std::string& bytes, const std::string& path = kFirst) {
    const auto file = Segment(path);
    REQUIRE(file->WriteAt(file->Size().value(), bytes).ok());
  }
  size_t SegmentCount() { return io->List("chains/7").value().size(); }
  Visited All() {
    Visited visited;
    REQUIRE(ForEachLine(*io, kStream, Collect(&visited)).ok());
    return visited;
  }
  Visited From(uint64_t seq) {
    Visited visited;
    REQUIRE(ForEachLineFrom(*io, kStream, Seq(seq), Collect(&visited)).ok());
    return visited;
  }
  static memoirfs::chain::LineVisitor Collect(Visited* visited) {
    return [visited](uint64_t number, std::string_view line) {
      visited->emplace_back(number, line);
      return Status();
    };
  }
  // The first `count` records from record `from` (counted from 1) on, as they are to be visited.
  Visited Expected(size_t from, size_t to) const {
    Visited expected;
    for (size_t seq = from; seq <= to; ++seq) expected.emplace_back(seq, records[seq - 1].line);
    return expected;
  }
};

}  // namespace

TEST_CASE_METHOD(Chain, "a new chain is empty") {
  CHECK(All().empty());
  CHECK(From(1).empty());
  CHECK(FindLine(*io, kStream, Seq(1)).code() == Code::kNotFound);
  CHECK(Open()->head() == memoirfs::chain::Head{});
  CHECK(All().empty());
}

TEST_CASE_METHOD(Chain, "records are lines of one file, in order") {
  Fill(0, 60);
  std::string text;
  for (const SealedRecord& record : records) text += record.line + "\n";
  CHECK(ReadWholeFile(*io, kFirst).value() == text);
  CHECK(All() == Expected(1, 60));
}

TEST_CASE_METHOD(Chain, "a reopened chain goes on from its last record") {
  Fill(0, 5);
  {
    const auto writer = Open();
    CHECK(writer->head().seq == Seq(5));
    CHECK(writer->head().hash == records[4].hash);
    CHECK(writer->head().ts == records[4].ts);
  }
  Fill(5, 60);
  CHECK(All() == Expected(1, 60));
}

TEST_CASE_METHOD(Chain, "a record that does not follow is refused") {
  const auto writer = Open();
  CHECK(writer->Append(records[1]).code() == Code::kInternal);
  REQUIRE(writer->Append(records[0]).ok());
  CHECK(writer->Append(records[0]).code() == Code::kInternal);
  CHECK(writer->Append(records[1]).ok());
}

TEST_CASE_METHOD(Chain, "a segment that is full is followed by a new one") {
  Fill(0, 60, 4096);
  CHECK(SegmentCount() > 8);
  CHECK(io->Stat("chains/7/000001.jsonl").value().size >= 4096);
  CHECK(All() == Expected(1, 60));
  CHECK(Open()->head().seq == Seq(60));
}

TEST_CASE_METHOD(Chain, "reading starts at any record, whatever segment it is in") {
  for (const uint64_t roll_bytes : {1ULL, 4096ULL, 1ULL << 20}) {
    const memoirfs::test::TempDirectory other;
    io = memoirfs::OpenRealIo(other.path()).value();
    Fill(0, 60, roll_bytes);
    for (uint64_t seq = 1; seq <= 60; ++seq) {
      INFO(roll_bytes << " " << seq);
      CHECK(From(seq) == Expected(seq, 60));
      CHECK(FindLine(*io, kStream, Seq(seq)).value() == records[seq - 1].line);
    }
    CHECK(From(0) == Expected(1, 60));
    CHECK(From(61).empty());
    CHECK(FindLine(*io, kStream, Seq(61)).code() == Code::kNotFound);
    CHECK(FindLine(*io, kStream, Seq(0)).code() == Code::kNotFound);
  }
}

TEST_CASE_METHOD(Chain, "a torn last line is cut wherever it was torn, and nothing else is") {
  Fill(0, 3);
  const uint64_t whole = io->Stat(kFirst).value().size;
  const std::string& next = records[3].line;
  for (size_t torn = 0; torn <= next.size(); torn += 13) {
    AppendRaw(next.substr(0, torn));
    CHECK(All() == Expected(1, 3));  // a reader does not wait for the next opening
    uint64_t cut = 99;
    CHECK(Open(1ULL << 20, &cut)->head().seq == Seq(3));
    CHECK(cut == torn);
    CHECK(io->Stat(kFirst).value().size == whole);
  }
  AppendRaw(Bytes(200'000, '\0'));
  CHECK(Open()->head().seq == Seq(3));
  Fill(3, 60);
  CHECK(All() == Expected(1, 60));
}

TEST_CASE_METHOD(Chain, "a first line that is torn leaves an empty chain") {
  Open();
  AppendRaw(records[0].line);
  uint64_t cut = 0;
  CHECK(Open(1ULL << 20, &cut)->head().seq == Seq(0));
  CHECK(cut == records[0].line.size());
}

TEST_CASE_METHOD(Chain, "a new segment without a record continues the one before") {
  Fill(0, 5);
  REQUIRE(io->Open("chains/7/000002.jsonl", OpenMode::kCreate).ok());
  CHECK(Open()->head().seq == Seq(5));
  CHECK(From(5) == Expected(5, 5));
  Fill(5, 8);
  CHECK(io->Stat("chains/7/000002.jsonl").value().size > 0);
  CHECK(All() == Expected(1, 8));
  CHECK(From(6) == Expected(6, 8));
}

TEST_CASE_METHOD(Chain, "a damaged last line that is complete is not cut but reported") {
  Fill(0, 3);
  AppendRaw("damaged\n");
  const uint64_t size = io->Stat(kFirst).value().size;
  CHECK(SegmentWriter::Open(*io, kStream, {}, nullptr).code() == Code::kCorrupt);
  CHECK(io->Stat(kFirst).value().size == size);
  Visited expected = Expected(1, 3);
  expected.emplace_back(4, "damaged");
  CHECK(All() == expected);
}

TEST_CASE_METHOD(Chain, "damage in the middle stays where it is and is handed to the visitor") {
  Fill(0, 5);
  REQUIRE(Segment()->WriteAt(records[0].line.size() + 10, "###").ok());
  const uint64_t size = io->Stat(kFirst).value().size;
  CHECK(Open()->head().seq == Seq(5));
  CHECK(io->Stat(kFirst).value().size == size);
  CHECK(All().size() == 5);
  CHECK(All()[1].second.find("###") != std::string::npos);
  CHECK(From(2).front() == All()[1]);
  CHECK(From(3) == Expected(3, 5));
}

TEST_CASE_METHOD(Chain, "an earlier segment that does not end with its line shows it") {
  Fill(0, 10, 4096);
  REQUIRE(SegmentCount() >= 2);
  const auto file = Segment();
  const uint64_t size = file->Size().value();
  REQUIRE(file->Truncate(size - 10).ok());
  const Visited all = All();
  CHECK(all.size() == 10);
  CHECK(all != Expected(1, 10));
}

TEST_CASE_METHOD(Chain, "a missing segment is corrupt, not a shorter chain") {
  Fill(0, 60, 4096);
  REQUIRE(io->Remove("chains/7/000003.jsonl").ok());
  Visited visited;
  CHECK(ForEachLine(*io, kStream, Collect(&visited)).code() == Code::kCorrupt);
  CHECK(ForEachLineFrom(*io, kStream, Seq(50), Collect(&visited)).code() == Code::kCorrupt);
  CHECK(SegmentWriter::Open(*io, kStream, {}, nullptr).code() == Code::kCorrupt);
}

TEST_CASE_METHOD(Chain, "a segment whose first line is damaged is still found, by reading") {
  Fill(0, 60, 4096);
  REQUIRE(Segment("chains/7/000004.jsonl")->WriteAt(0, "###").ok());
  for (uint64_t seq = 1; seq <= 60; ++seq) {
    const Visited visited = From(seq);
    CHECK(visited.size() == 61 - seq);
    CHECK(visited.back() == Expected(60, 60).back());
  }
}

TEST_CASE_METHOD(Chain, "a line that was dropped shows at the first record read behind it") {
  Fill(0, 5);
  std::string text = ReadWholeFile(*io, kFirst).value();
  text.erase(0, records[0].line.size() + 1);
  text.erase(0, records[1].line.size() + 1);
  text = records[0].line + "\n" + text;
  REQUIRE(memoirfs::WriteFileAtomically(*io, kFirst, text).ok());
  CHECK(FindLine(*io, kStream, Seq(4)).code() == Code::kCorrupt);
  Visited visited;
  CHECK(ForEachLineFrom(*io, kStream, Seq(3), Collect(&visited)).code() == Code::kCorrupt);
  CHECK(visited.empty());
}

TEST_CASE_METHOD(Chain, "a line without an end is refused before it fills the memory") {
  Fill(0, 1);
  AppendRaw(std::string(3U << 20, 'x') + "\n");
  Visited visited;
  CHECK(ForEachLine(*io, kStream, Collect(&visited)).code() == Code::kCorrupt);
  CHECK(visited.size() == 1);
  CHECK(SegmentWriter::Open(*io, kStream, {}, nullptr).code() == Code::kCorrupt);
}

TEST_CASE_METHOD(Chain, "files that are no segments are left alone") {
  Fill(0, 3);
  for (const char* name : {"1.jsonl", "000000.jsonl", "000002.jsonl.tmp", "x000002.jsonl",
                           "0000002.jsonl", "-00002.jsonl"}) {
    REQUIRE(io->Open(std::string("chains/7/") + name, OpenMode::kCreate).ok());
  }
  CHECK(All() == Expected(1, 3));
  CHECK(Open()->head().seq == Seq(3));
}

TEST_CASE_METHOD(Chain, "a failure of the visitor ends the reading") {
  Fill(0, 5);
  size_t calls = 0;
  const Status status = ForEachLine(*io, kStream, [&](uint64_t number, std::string_view) {
    ++calls;
    return number == 2 ? Status(Code::kQuota, "enough") : Status();
  });
  CHECK(status.code() == Code::kQuota);
  CHECK(calls == 2);
}

TEST_CASE_METHOD(Chain, "a line that could not be written whole leaves nothing of itself") {
  Fill(0, 2);
  const auto writer = Open();
  const uint64_t size = io->Stat(kFirst).value().size;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = size + 100;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const Status refused = writer->Append(records[2]);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, old_handler);
  CHECK(refused.code() == Code::kTooLarge);
  CHECK(io->Stat(kFirst).value().size == size);
  CHECK(writer->head().seq == Seq(2));
  CHECK(writer->Append(records[2]).ok());
  CHECK(All() == Expected(1, 3));
}
