#include "store/journal/scan.h"

#include <catch2/catch.hpp>

#include "store/base/coding.h"
#include "store/journal/frame_group.h"
#include "tests/support/journal_files.h"

namespace memoirfs::journal {
namespace {

using testing::FramesOfFile;
using testing::SimIo;
using testing::TestBlob;
using testing::TestRecord;

constexpr PackId kPack{7};
constexpr uint64_t kFileSize = 16384;
constexpr uint64_t kEpoch = 5;

// A journal file that a test writes frame by frame, each with the durable mark that it wants.
class FileOfFrames {
 public:
  FileOfFrames() {
    testing::MakeFrameDirectories(io);
    file_ = std::move(io.Open(JournalPath(kPack.number), OpenMode::kCreate)).value();
    REQUIRE(file_->WriteAt(0, Bytes(kFileSize, '\0')).ok());
  }

  Location Add(const NewFrame& frame, uint64_t durable_offset, uint64_t epoch = kEpoch) {
    Result<FrameGroup> group = FrameGroup::Assemble({&frame, 1});
    REQUIRE(group.ok());
    const Location where =
        group->Place({kPack, epoch, end, {kPack.number, durable_offset}}).front();
    REQUIRE(file_->WriteAt(end, group->buffer()).ok());
    end += group->size();
    return where;
  }

  void Flip(uint64_t offset) {
    const Bytes byte = file_->ReadAt(offset, 1).value();
    Put(offset, Bytes(1, static_cast<char>(byte[0] ^ 1)));
  }
  void Put(uint64_t offset, ByteView bytes) {
    REQUIRE(io.Overwrite(JournalPath(kPack.number), offset, bytes));
  }

  FramesOfFile Scan(const ScanBounds& bounds = {}) {
    return testing::ScanJournal(io, kPack.number, bounds);
  }

  SimIo io;
  uint64_t end = 0;

 private:
  std::unique_ptr<File> file_;
};

NewFrame Small(uint64_t n) { return TestRecord(1, n, "{\"n\":" + std::to_string(n) + "}"); }

}  // namespace

TEST_CASE("an empty journal and one with frames scan clean") {
  FileOfFrames f;
  CHECK(f.Scan().scan.good_end == 0);
  CHECK(f.Scan().scan.last_epoch == 0);
  CHECK_FALSE(f.Scan().scan.torn_tail);
  const Location first = f.Add(Small(1), 0);
  f.Add(Small(2), f.end);
  const FramesOfFile found = f.Scan();
  REQUIRE(found.frames.size() == 2);
  CHECK(found.frames[0].where == first);
  CHECK(found.frames[0].payload == Small(1).head);
  CHECK(found.scan.good_end == f.end);
  CHECK(found.scan.last_epoch == kEpoch);
  CHECK(found.scan.durable_upto == Lsn{kPack.number, found.frames[1].where.offset});
  CHECK(found.scan.damage.empty());
  CHECK_FALSE(found.scan.torn_tail);
  CHECK(found.scan.tail_end == f.end);
}

TEST_CASE("every flipped byte of an unacknowledged last frame is a torn tail") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t good_end = f.end;
  f.Add(TestBlob("twelve bytes"), good_end);
  for (uint64_t offset = good_end; offset < f.end; ++offset) {
    INFO("offset " << offset);
    f.Flip(offset);
    const FramesOfFile found = f.Scan();
    f.Flip(offset);
    CHECK(found.frames.size() == 1);
    CHECK(found.scan.good_end == good_end);
    CHECK(found.scan.torn_tail);
    CHECK(found.scan.damage.empty());
  }
}

TEST_CASE("every flipped byte of an acknowledged frame is damage, and what follows counts") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t start = f.end;
  f.Add(TestBlob("twelve bytes"), 0);
  const uint64_t behind = f.end;
  f.Add(Small(3), 0);  // of the same group: says nothing itself
  f.Add(Small(4), behind);
  for (uint64_t offset = start; offset < behind; ++offset) {
    INFO("offset " << offset);
    f.Flip(offset);
    const FramesOfFile found = f.Scan();
    f.Flip(offset);
    CHECK(found.frames.size() == 3);
    REQUIRE(found.scan.damage.size() == 1);
    CHECK(found.scan.damage[0].offset == start);
    CHECK(found.scan.damage[0].length == behind - start);
    CHECK(found.scan.damage[0].header_valid == (offset >= start + FrameHeader::kSize));
    CHECK(found.scan.good_end == f.end);
    CHECK_FALSE(found.scan.torn_tail);
  }
}

TEST_CASE("a damaged payload says what its header was") {
  FileOfFrames f;
  const Location where = f.Add(TestBlob("abc"), 0);
  f.Add(Small(2), f.end);
  f.Flip(where.offset + FrameHeader::kSize);
  const FramesOfFile found = f.Scan();
  REQUIRE(found.scan.damage.size() == 1);
  REQUIRE(found.scan.damage[0].header_valid);
  CHECK(found.scan.damage[0].header.type == FrameType::kBlob);
  CHECK(found.scan.damage[0].header.length == where.length);
}

TEST_CASE("frames behind a gap that nobody acknowledged do not count") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t good_end = f.end;
  f.Add(Small(2), good_end);
  f.Add(Small(3), good_end);
  f.Flip(good_end);
  const FramesOfFile found = f.Scan();
  CHECK(found.frames.size() == 1);
  CHECK(found.scan.torn_tail);
  CHECK(found.scan.tail_end > good_end);
}

TEST_CASE("damage and a torn tail right behind it are told apart") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t damaged = f.end;
  f.Add(Small(2), 0);
  const uint64_t durable = f.end;
  f.Add(Small(3), durable);  // torn
  f.Add(Small(4), durable);  // reached the disk before
  f.Flip(damaged);
  f.Flip(durable);
  const FramesOfFile found = f.Scan();
  REQUIRE(found.scan.damage.size() == 1);
  CHECK(found.scan.damage[0].offset == damaged);
  CHECK(found.scan.damage[0].length == durable - damaged);
  CHECK(found.scan.good_end == durable);
  CHECK(found.scan.torn_tail);
  CHECK(found.frames.size() == 1);
}

TEST_CASE("several damaged places are found, the first frame among them") {
  FileOfFrames f;
  std::vector<Location> places;
  for (uint64_t n = 0; n < 20; ++n) places.push_back(f.Add(Small(n), f.end));
  for (const size_t n : {0U, 7U, 8U, 13U}) f.Flip(places[n].offset);
  const FramesOfFile found = f.Scan();
  CHECK(found.frames.size() == 16);
  CHECK(found.scan.damage.size() == 3);  // two of them touch
}

TEST_CASE("an acknowledged frame that reads as zeros is damage") {
  FileOfFrames f;
  const Location first = f.Add(Small(1), 0);
  f.Add(Small(2), f.end);
  f.Put(first.offset, Bytes(FrameHeader::kSize + 8, '\0'));
  const FramesOfFile found = f.Scan();
  CHECK(found.frames.size() == 1);
  CHECK(found.scan.damage.size() == 1);
}

TEST_CASE("what a later journal says of this one turns a bad end into damage") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t damaged = f.end;
  f.Add(Small(2), 0);
  f.Flip(damaged);
  CHECK(f.Scan().scan.torn_tail);

  const FramesOfFile by_later_file = f.Scan({.durable = {kPack.number + 1, 0}});
  CHECK_FALSE(by_later_file.scan.torn_tail);
  REQUIRE(by_later_file.scan.damage.size() == 1);
  CHECK(by_later_file.scan.damage[0].offset == damaged);

  f.Put(damaged, Bytes(f.end - damaged, '\0'));
  const FramesOfFile lost = f.Scan({.durable = {kPack.number, f.end}});
  REQUIRE(lost.scan.damage.size() == 1);
  CHECK(lost.scan.damage[0].length == f.end - damaged);
  CHECK(lost.scan.good_end == f.end);
}

TEST_CASE("frames of an earlier epoch or another place behind a gap are no proof") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t bad = f.end;
  f.Add(Small(2), 0);
  SECTION("an earlier epoch") { f.Add(Small(3), f.end, kEpoch - 1); }
  SECTION("a later epoch") { f.Add(Small(3), f.end, kEpoch + 1); }
  SECTION("moved") {
    FrameHeader header;
    header.type = FrameType::kMark;
    header.pack = kPack.Encode();
    header.epoch = kEpoch;
    header.offset = f.end + 512;
    header.durable_upto = {kPack.number, f.end};
    f.Put(f.end, header.Encode());
  }
  SECTION("of another file") {
    FrameHeader header;
    header.type = FrameType::kMark;
    header.pack = kPack.Encode() + 1;
    header.epoch = kEpoch;
    header.offset = f.end;
    header.durable_upto = {kPack.number, f.end};
    f.Put(f.end, header.Encode());
  }
  SECTION("that claims to know the future") { f.Add(Small(3), f.end + 4096); }
  f.Flip(bad);
  const FramesOfFile found = f.Scan();
  CHECK(found.frames.size() == 1);
  CHECK(found.scan.torn_tail);
}

TEST_CASE("frames inside the content of a damaged blob are not taken for frames") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t start = f.end;
  // A blob that holds a frame made for just this place.
  const uint64_t inner = start + FrameHeader::kSize + Digest::kSize;
  FrameHeader forged;
  forged.type = FrameType::kState;
  forged.pack = kPack.Encode();
  forged.epoch = kEpoch;
  forged.offset = inner;
  forged.durable_upto = {kPack.number, inner};
  f.Add(TestBlob(forged.Encode()), start);
  SECTION("its payload is damaged: it is stepped over whole") {
    f.Flip(start + FrameHeader::kSize);
    f.Add(Small(3), f.end);
    const FramesOfFile found = f.Scan();
    REQUIRE(found.frames.size() == 2);
    CHECK(found.frames[1].payload == Small(3).head);
  }
  SECTION("its header is damaged: the epoch must be known, which content cannot") {
    forged.epoch = kEpoch + 1;
    f.Put(inner, forged.Encode());
    f.Flip(start);
    CHECK(f.Scan().frames.size() == 1);
  }
}

TEST_CASE("a later opening that went on in the file survives damage to its first mark") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t stopped = f.end;
  f.Add({FrameType::kMark, {}, {}}, stopped, kEpoch + 3);
  f.Add(Small(2), stopped, kEpoch + 3);
  f.Add(Small(3), f.end, kEpoch + 3);
  CHECK(f.Scan().frames.size() == 4);
  for (uint64_t offset = stopped; offset < stopped + FrameHeader::kSize; ++offset) {
    f.Flip(offset);
    const FramesOfFile found = f.Scan();
    f.Flip(offset);
    CHECK(found.frames.size() == 3);
    CHECK(found.scan.damage.size() == 1);
  }
}

TEST_CASE("a scan may start at any frame, and nowhere else") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  const uint64_t second = f.end;
  f.Add(Small(2), second);
  std::unique_ptr<File> file =
      std::move(f.io.Open(JournalPath(kPack.number), OpenMode::kRead)).value();
  size_t frames = 0;
  const auto count = [&](const FrameHeader&, const Location&, ByteView) {
    ++frames;
    return Status();
  };
  CHECK(ScanFrames(*file, kPack, second, count).ok());
  CHECK(frames == 1);
  CHECK(ScanFrames(*file, kPack, 4, count).code() == Code::kInvalidArgument);
}

TEST_CASE("a failing visitor or a failing read ends the scan with its failure") {
  FileOfFrames f;
  f.Add(Small(1), 0);
  std::unique_ptr<File> file =
      std::move(f.io.Open(JournalPath(kPack.number), OpenMode::kRead)).value();
  const auto refuse = [](const FrameHeader&, const Location&, ByteView) {
    return Status(Code::kBusy, "enough");
  };
  CHECK(ScanFrames(*file, kPack, 0, refuse).code() == Code::kBusy);
  f.io.FailAt(1, EIO, testing::SimCall::kRead);
  CHECK(ScanFrames(*file, kPack, 0, refuse).code() == Code::kIo);
}

TEST_CASE("frames bigger than the scanner's window are found") {
  SimIo io;
  testing::MakeFrameDirectories(io);
  Result<std::unique_ptr<Journal>> journal = Journal::Create(io, {24 << 20, 1024}, 1, kEpoch);
  REQUIRE(journal.ok());
  const Bytes big(FrameHeader::kMaxPayload, 'b');
  const std::vector<NewFrame> frames = {
      {FrameType::kState, {}, big}, Small(1), {FrameType::kState, {}, big}, Small(2)};
  REQUIRE((*journal)->Append(frames).ok());
  const FramesOfFile found = testing::ScanJournal(io, 1);
  REQUIRE(found.frames.size() == 4);
  CHECK(found.frames[2].payload == big);
  CHECK(found.frames[3].payload == Small(2).head);
}

}  // namespace memoirfs::journal
