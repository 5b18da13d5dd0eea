#pragma once

// Frames on their way to a file, in one buffer. Copying and checksums of the payloads need no lock;
// the headers are written last, when the place of the group is known.

#include <cstdint>
#include <span>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/status.h"
#include "store/journal/frame.h"

namespace memoirfs::journal {

// Where and when a group is written: what its headers say.
struct Placement {
  PackId pack;
  uint64_t epoch = 0;
  uint64_t offset = 0;  // of the first header
  Lsn durable_upto;
};

class FrameGroup {
 public:
  // kInvalidArgument for no frames, or a payload above FrameHeader::kMaxPayload.
  static Result<FrameGroup> Assemble(std::span<const NewFrame> frames);

  uint64_t size() const { return buffer_.size(); }

  // Writes the headers. The buffer is then what the file holds from placement.offset on.
  std::vector<Location> Place(const Placement& placement);
  ByteView buffer() const { return buffer_; }

 private:
  struct Member {
    FrameType type{};
    uint32_t length = 0;
    uint32_t payload_crc = 0;
    size_t start = 0;  // of the header in the buffer
  };

  void Add(const NewFrame& frame);

  Bytes buffer_;
  std::vector<Member> members_;
};

}  // namespace memoirfs::journal
