#include "store/base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstdlib>

namespace memoirfs {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Fetching an algorithm costs more than hashing 64 bytes: once a process.
const EVP_MD* Sha256Algorithm() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kAlgorithm;
}

// OpenSSL fails here only when memory is out or the library is broken; a wrong digest must never
// be the answer to that.
void MustSucceed(int result) {
  if (result != 1) std::abort();
}

}  // namespace

std::string Digest::ToHex() const {
  std::string hex(kSize * 2, '0');
  for (size_t i = 0; i < kSize; ++i) {
    hex[2 * i] = kHexDigits[bytes[i] >> 4];
    hex[2 * i + 1] = kHexDigits[bytes[i] & 15];
  }
  return hex;
}

Result<Digest> Digest::FromHex(std::string_view hex) {
  Digest digest;
  if (hex.size() != kSize * 2) {
    return Status(Code::kInvalidArgument, "a digest has 64 hex digits");
  }
  for (size_t i = 0; i < kSize; ++i) {
    const int high = HexValue(hex[2 * i]);
    const int low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) {
      return Status(Code::kInvalidArgument, "a digest has lower-case hex digits only");
    }
    digest.bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return digest;
}

Digest Digest::FromRaw(ByteView raw) {
  Digest digest;
  std::memcpy(digest.bytes.data(), raw.data(), kSize);
  return digest;
}

ContentId EmptyContent() {
  static const Digest kEmpty = Sha256::Of({});
  return ContentId{kEmpty, 0, ContentKind::kFlat};
}

struct Sha256::Impl {
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  Impl() {
    if (ctx == nullptr) std::abort();
  }
  ~Impl() { EVP_MD_CTX_free(ctx); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  void Start() { MustSucceed(EVP_DigestInit_ex2(ctx, Sha256Algorithm(), nullptr)); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) { impl_->Start(); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256::Sha256(const Sha256& other) : impl_(std::make_unique<Impl>()) {
  MustSucceed(EVP_MD_CTX_copy_ex(impl_->ctx, other.impl_->ctx));
}

Sha256& Sha256::operator=(const Sha256& other) {
  if (this != &other) MustSucceed(EVP_MD_CTX_copy_ex(impl_->ctx, other.impl_->ctx));
  return *this;
}

void Sha256::Update(ByteView data) {
  MustSucceed(EVP_DigestUpdate(impl_->ctx, data.data(), data.size()));
}

Digest Sha256::Finish() {
  Digest digest;
  MustSucceed(EVP_DigestFinal_ex(impl_->ctx, digest.bytes.data(), nullptr));
  impl_->Start();
  return digest;
}

Digest Sha256::Of(ByteView data) {
  thread_local Sha256 hasher;
  hasher.Update(data);
  return hasher.Finish();
}

Bytes RandomBytes(size_t size) {
  Bytes bytes(size, '\0');
  MustSucceed(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)));
  return bytes;
}

}  // namespace memoirfs
