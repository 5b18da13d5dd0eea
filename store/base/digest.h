#pragma once

// SHA-256 digests and the identity of content.

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/status.h"

namespace memoirfs {

struct Digest {
  static constexpr size_t kSize = 32;
  std::array<uint8_t, kSize> bytes{};

  bool IsZero() const { return *this == Digest{}; }
  std::string ToHex() const;  // 64 lower-case hex digits
  ByteView View() const { return {reinterpret_cast<const char*>(bytes.data()), kSize}; }

  // Exactly 64 lower-case hex digits, or kInvalidArgument.
  static Result<Digest> FromHex(std::string_view hex);
  // Precondition: raw.size() == kSize.
  static Digest FromRaw(ByteView raw);

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// How the bytes of a file are laid out in the object store.
enum class ContentKind : uint8_t {
  kFlat = 0,  // one object whose bytes are the file: the digest is what sha256sum prints
  kTree = 1,  // chunks under tree nodes (store/cas/chunk_tree.h): the digest is the root node's
};

// What a file contains: equal ids mean equal bytes. The size is part of the identity and checked
// with the digest.
struct ContentId {
  Digest digest;
  uint64_t size = 0;  // bytes of the file
  ContentKind kind = ContentKind::kFlat;

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const ContentId&, const ContentId&) = default;
};

// The id of no bytes at all (SHA-256 of the empty string).
ContentId EmptyContent();

// An incremental SHA-256 (OpenSSL EVP; the algorithm is fetched once a process and the context is
// reused). Not thread-safe; copyable, which copies the midstate.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256& other);
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(ByteView data);
  // The digest of all bytes so far; the object starts anew.
  Digest Finish();

  static Digest Of(ByteView data);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `size` random bytes from the system; aborts where the system has none (no key may be weak).
Bytes RandomBytes(size_t size);

}  // namespace memoirfs

template <>
struct std::hash<memoirfs::Digest> {
  size_t operator()(const memoirfs::Digest& d) const noexcept {
    size_t h = 0;
    std::memcpy(&h, d.bytes.data(), sizeof(h));
    return h;
  }
};
