#include "store/journal/frame_group.h"

#include "store/base/coding.h"

namespace memoirfs::journal {

Result<FrameGroup> FrameGroup::Assemble(std::span<const NewFrame> frames) {
  if (frames.empty()) return Status(Code::kInvalidArgument, "append of no frames");
  uint64_t total = 0;
  for (const NewFrame& frame : frames) {
    const uint64_t payload = uint64_t{frame.head.size()} + frame.body.size();
    if (payload > FrameHeader::kMaxPayload) {
      return Status(Code::kInvalidArgument, "a frame's payload of " + std::to_string(payload) +
                                                " bytes is above the limit of " +
                                                std::to_string(FrameHeader::kMaxPayload));
    }
    total += AlignFrame(FrameHeader::kSize + payload);
  }
  FrameGroup group;
  group.buffer_.reserve(total);
  group.members_.reserve(frames.size());
  for (const NewFrame& frame : frames) group.Add(frame);
  return group;
}

void FrameGroup::Add(const NewFrame& frame) {
  Member member;
  member.type = frame.type;
  member.length = static_cast<uint32_t>(frame.head.size() + frame.body.size());
  member.start = buffer_.size();
  buffer_.append(FrameHeader::kSize, '\0').append(frame.head).append(frame.body);
  member.payload_crc = Crc32c(ByteView(buffer_).substr(member.start + FrameHeader::kSize));
  buffer_.resize(AlignFrame(buffer_.size()), '\0');
  members_.push_back(member);
}

std::vector<Location> FrameGroup::Place(const Placement& placement) {
  std::vector<Location> locations;
  locations.reserve(members_.size());
  for (const Member& member : members_) {
    FrameHeader header;
    header.type = member.type;
    header.length = member.length;
    header.payload_crc = member.payload_crc;
    header.pack = placement.pack.Encode();
    header.epoch = placement.epoch;
    header.offset = placement.offset + member.start;
    header.durable_upto = placement.durable_upto;
    buffer_.replace(member.start, FrameHeader::kSize, header.Encode());
    locations.push_back({placement.pack, header.offset, member.length, member.type});
  }
  return locations;
}

}  // namespace memoirfs::journal
