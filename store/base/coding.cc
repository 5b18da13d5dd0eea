#include "store/base/coding.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <limits>

namespace memoirfs {
namespace {

template <typename T>
void PutBigEndian(Bytes& out, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

}  // namespace

Encoder& Encoder::U8(uint8_t v) {
  out_.push_back(static_cast<char>(v));
  return *this;
}

Encoder& Encoder::U16(uint16_t v) {
  PutBigEndian(out_, v);
  return *this;
}

Encoder& Encoder::U32(uint32_t v) {
  PutBigEndian(out_, v);
  return *this;
}

Encoder& Encoder::U64(uint64_t v) {
  PutBigEndian(out_, v);
  return *this;
}

Encoder& Encoder::Raw(ByteView bytes) {
  out_.append(bytes);
  return *this;
}

Encoder& Encoder::String(ByteView bytes) {
  return U32(static_cast<uint32_t>(bytes.size())).Raw(bytes);
}

Encoder& Encoder::Hash(const Digest& digest) { return Raw(digest.View()); }

Encoder& Encoder::Content(const ContentId& id) {
  return Hash(id.digest).U64(id.size).U8(static_cast<uint8_t>(id.kind));
}

template <typename T>
T Decoder::Fixed() {
  const ByteView raw = Raw(sizeof(T));
  T value = 0;
  for (const char c : raw) value = static_cast<T>(value << 8 | static_cast<uint8_t>(c));
  return value;
}

uint8_t Decoder::U8() {
  const ByteView raw = Raw(1);
  return raw.empty() ? 0 : static_cast<uint8_t>(raw[0]);
}
uint16_t Decoder::U16() { return Fixed<uint16_t>(); }
uint32_t Decoder::U32() { return Fixed<uint32_t>(); }
uint64_t Decoder::U64() { return Fixed<uint64_t>(); }

ByteView Decoder::Raw(size_t size) {
  if (!ok_ || size > in_.size()) {
    ok_ = false;
    return {};
  }
  const ByteView taken = in_.substr(0, size);
  in_.remove_prefix(size);
  return taken;
}

ByteView Decoder::String() { return Raw(U32()); }

Digest Decoder::Hash() {
  const ByteView raw = Raw(Digest::kSize);
  return raw.empty() ? Digest{} : Digest::FromRaw(raw);
}

ContentId Decoder::Content() {
  ContentId id;
  id.digest = Hash();
  id.size = U64();
  const uint8_t kind = U8();
  if (kind > static_cast<uint8_t>(ContentKind::kTree)) ok_ = false;
  id.kind = static_cast<ContentKind>(kind);
  return id;
}

uint32_t Crc32c(ByteView data) {
  // ISA-L takes an int for the length and, though it only reads, a pointer to non-const.
  constexpr size_t kMaxRun = std::numeric_limits<int>::max();
  uint32_t crc = ~0U;
  while (!data.empty()) {
    const size_t run = std::min(data.size(), kMaxRun);
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));  // NOLINT
    crc = crc32_iscsi(bytes, static_cast<int>(run), crc);
    data.remove_prefix(run);
  }
  return ~crc;
}

}  // namespace memoirfs
