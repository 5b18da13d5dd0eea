#include "store/cas/object_reader.h"

#include <utility>
#include <vector>

#include "store/base/coding.h"
#include "store/base/log.h"

namespace memoirfs::cas {
namespace {

using journal::FrameType;
using journal::Location;

// What an extend frame extends may be one itself, and so on; a longer chain is not ours.
constexpr size_t kMaxFrames = 10'000;
constexpr uint64_t kMaxPayload = kChunkSize + 2 * Digest::kSize;

// Failures of the moment: to be tried again, not to be repaired.
bool IsPassing(Code code) {
  return code == Code::kTooManyFiles || code == Code::kOutOfMemory || code == Code::kInterrupted ||
         code == Code::kUnavailable;
}

std::string Describe(const Location& where) {
  return (where.pack.bulk ? "bulk pack " : "journal or pack ") + std::to_string(where.pack.number) +
         " at offset " + std::to_string(where.offset);
}

}  // namespace

// One call of Read.
class ObjectReader::Reading {
 public:
  Reading(const ObjectReader& reader, const Digest& wanted, const Peek& peek)
      : reader_(reader), wanted_(wanted), peek_(peek) {}

  Result<Buffer> Run() {
    TRY(CollectParts());
    Bytes bytes = Assemble();
    if (const Digest found = Sha256::Of(bytes); found != wanted_) {
      return Corrupt("cas.digest-mismatch", "its bytes have the SHA-256 " + found.ToHex());
    }
    return Buffer(std::make_shared<const Bytes>(std::move(bytes)));
  }

 private:
  struct Part {
    Bytes payload;
    size_t begin = 0;  // of the object's bytes in it
  };

  Status CollectParts();
  // Reads the frame of `digest`; what it extends, when it does.
  Result<std::optional<Digest>> AddFrame(const Digest& digest);
  Result<Location> Locate(const Digest& digest);
  Result<Bytes> ReadFrame(const Location& where);
  Status CountBytes(uint64_t count);
  Bytes Assemble();
  Status Corrupt(std::string_view site, const std::string& why) const;

  const ObjectReader& reader_;
  const Digest& wanted_;
  const Peek& peek_;
  std::optional<Location> where_;  // of the frame of the wanted object
  std::vector<Part> parts_;        // the last one first
  Buffer base_;                    // what the parts extend, when it was at hand
  uint64_t total_ = 0;
};

Status ObjectReader::Reading::CollectParts() {
  std::optional<Digest> next = wanted_;
  while (next) {
    if (parts_.size() == kMaxFrames) {
      return Corrupt("cas.chain-too-long", "it lies in more than 10,000 frames");
    }
    ASSIGN_OR_RETURN(next, AddFrame(*next));
    if (!next) break;
    base_ = peek_(*next);
    if (base_ != nullptr) return CountBytes(base_->size());
  }
  return {};
}

Result<std::optional<Digest>> ObjectReader::Reading::AddFrame(const Digest& digest) {
  ASSIGN_OR_RETURN(const Location where, Locate(digest));
  ASSIGN_OR_RETURN(Bytes payload, ReadFrame(where));
  Decoder head(payload);
  const bool extends = where.type == FrameType::kExtend;
  const Digest whole = head.Hash();
  const Digest base = extends ? head.Hash() : Digest();
  if (!head.ok() || whole != digest) {
    return Corrupt("cas.wrong-frame",
                   "the frame in " + Describe(where) + " is not that of " + digest.ToHex());
  }
  TRY(CountBytes(head.rest().size()));
  const size_t begin = payload.size() - head.rest().size();
  parts_.push_back({std::move(payload), begin});
  return extends ? std::optional<Digest>(base) : std::nullopt;
}

Result<Location> ObjectReader::Reading::Locate(const Digest& digest) {
  ASSIGN_OR_RETURN(const std::optional<Location> where, reader_.locations_.Find(digest));
  if (!where) {
    return digest == wanted_ ? Corrupt("cas.missing", "the index knows no place of it")
                             : Corrupt("cas.base-missing", "it extends " + digest.ToHex() +
                                                               ", of which the "
                                                               "index knows no place");
  }
  if (digest == wanted_) where_ = where;
  if (where->type != FrameType::kBlob && where->type != FrameType::kExtend) {
    return Corrupt("cas.wrong-type", "the frame in " + Describe(*where) + " holds no object");
  }
  if (where->length > kMaxPayload) {
    return Corrupt("cas.too-long", "the frame in " + Describe(*where) + " has " +
                                       std::to_string(where->length) + " bytes");
  }
  return *where;
}

Result<Bytes> ObjectReader::Reading::ReadFrame(const Location& where) {
  auto payload = reader_.packs_.ReadPayload(where);
  if (payload.ok() || IsPassing(payload.code())) return payload;
  return Corrupt("cas.unreadable", payload.status().ToString());
}

Status ObjectReader::Reading::CountBytes(uint64_t count) {
  total_ += count;
  if (total_ <= kChunkSize) return {};
  return Corrupt("cas.too-long", "it has more than " + std::to_string(kChunkSize) + " bytes");
}

Bytes ObjectReader::Reading::Assemble() {
  if (parts_.size() == 1 && base_ == nullptr) {
    Bytes bytes = std::move(parts_.front().payload);
    bytes.erase(0, parts_.front().begin);
    return bytes;
  }
  Bytes bytes;
  bytes.reserve(total_);
  if (base_ != nullptr) bytes = *base_;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    bytes.append(part->payload, part->begin);
  }
  return bytes;
}

Status ObjectReader::Reading::Corrupt(std::string_view site, const std::string& why) const {
  std::string text = "object " + wanted_.ToHex();
  if (where_) text += " in " + Describe(*where_);
  text += ": " + why;
  Log(LogLevel::kError, site, text);
  if (reader_.listener_ != nullptr) reader_.listener_->OnCorrupt(wanted_, where_, why);
  return Status(Code::kCorrupt, std::move(text));
}

Result<Buffer> ObjectReader::Read(const Digest& digest, const Peek& peek) {
  return Reading(*this, digest, peek).Run();
}

}  // namespace memoirfs::cas
