#pragma once

// Random choices that are the same for one seed with every standard library.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace memoirfs::e2e {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Below(uint64_t bound) { return engine_() % bound; }
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }
  bool Percent(unsigned percent) { return Below(100) < percent; }

  template <typename Sequence>
  auto Pick(const Sequence& sequence) {
    return *(std::begin(sequence) + Below(std::size(sequence)));
  }

 private:
  std::mt19937_64 engine_;
};

// Bytes that are the same for one seed and differ between seeds.
inline std::string Pattern(uint64_t seed, size_t size) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (char& byte : bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

}  // namespace memoirfs::e2e
