// Hashes for identities: structural hashes, plan hashes, caches. Stable from run to run and from machine to machine
// (little-endian), since checkpoints hold them. Not for security.
#pragma once

#include <xxhash.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace hierarchos {

inline uint64_t hash64(std::span<const std::byte> data, uint64_t seed = 0) { return XXH64(data.data(), data.size(), seed); }

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
// For names that must not collide among millions of entries (token caches, content-addressed files).
inline Hash128 hash128(std::span<const std::byte> data, uint64_t seed = 0) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(data.data(), data.size(), seed);
  return {h.low64, h.high64};
}

// Folds values one after another; the order counts. Texts are delimited; add the size before a list. Integers of equal
// value are equal whatever their width; floats count by their bits.
class Hasher {
 public:
  explicit Hasher(uint64_t seed = 0) : value_(seed ^ 0x9E3779B97F4A7C15ull) {}

  template <typename T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void add(T v) {
    mix(static_cast<uint64_t>(v));
  }
  void add(double v) { mix(std::bit_cast<uint64_t>(v)); }
  void add(std::string_view s) {
    mix(s.size());
    mix(XXH64(s.data(), s.size(), 0));
  }
  uint64_t value() const { return value_; }

 private:
  void mix(uint64_t v) {
    value_ = std::rotl(value_ ^ (v * 0xC2B2AE3D27D4EB4Full), 31) * 0x9E3779B185EBCA87ull;
    value_ ^= value_ >> 29;
  }
  uint64_t value_;
};

}  // namespace hierarchos
