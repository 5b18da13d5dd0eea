#include "store/volume/purge_plan.h"

#include "store/base/coding.h"
#include "store/volume/layout.h"

namespace memoirfs::volume {
namespace {

constexpr ByteView kMagic{"\xF7MFPURG\n", 8};
constexpr uint32_t kVersion = 1;

Status Damaged(FileIo& io) {
  return Status(Code::kCorrupt, io.root() + "/" + kPurgeFile +
                                    " is damaged: an agent was being purged. Remove this file to "
                                    "open the store, and then purge the agent again");
}

}  // namespace

Status WritePurgePlan(FileIo& io, const PurgePlan& plan) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U32(plan.stream.value).U64(plan.last_pack).U64(plan.last_bulk);
  for (const Digest& digest : plan.objects) out.Hash(digest);
  const Digest checksum = Sha256::Of(out.bytes());
  out.Hash(checksum);
  return WriteFileAtomically(io, kPurgeFile, out.bytes());
}

Result<std::optional<PurgePlan>> ReadPurgePlan(FileIo& io) {
  const Result<Bytes> raw = ReadWholeFile(io, kPurgeFile);
  if (raw.code() == Code::kNotFound) return std::optional<PurgePlan>();
  TRY(raw);
  if (raw->size() < Digest::kSize) return Damaged(io);
  const ByteView body = ByteView(*raw).substr(0, raw->size() - Digest::kSize);
  if (Sha256::Of(body).View() != ByteView(*raw).substr(body.size())) return Damaged(io);
  Decoder in(body);
  if (in.Raw(kMagic.size()) != kMagic) return Damaged(io);
  if (const uint32_t version = in.U32(); version != kVersion) {
    return Status(Code::kUnknownFormat, io.root() + "/" + kPurgeFile + " has version " +
                                            std::to_string(version) +
                                            ": open the store with a newer memoirfs");
  }
  PurgePlan plan;
  plan.stream = StreamId(in.U32());
  plan.last_pack = in.U64();
  plan.last_bulk = in.U64();
  while (in.ok() && !in.rest().empty()) plan.objects.insert(in.Hash());
  if (!in.ok()) return Damaged(io);
  return std::optional<PurgePlan>(std::move(plan));
}

Status RemovePurgePlan(FileIo& io) {
  TRY(io.Remove(kPurgeFile));
  return io.SyncDirectory(".");
}

}  // namespace memoirfs::volume
