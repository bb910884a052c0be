// Counter-based random numbers and the small hashes that name their streams: what is drawn depends on names and counters
// only, never on the order of drawing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hierarchos {

// FNV-1a, 64 bits, over the bytes of a text.
constexpr uint64_t fnv1a64(std::string_view text) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
  return h;
}

// Advances the state and returns the next number (Steele, Lea and Flood 2014).
constexpr uint64_t splitmix64(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Number `index` (from 0) of the sequence that starts at state `seed`, without those before it.
constexpr uint64_t splitmix64_at(uint64_t seed, uint64_t index) {
  uint64_t state = seed + index * 0x9E3779B97F4A7C15ull;
  return splitmix64(state);
}

// Philox4x32-10 (Salmon et al. 2011, as in Random123): four 32-bit words for a counter and a key.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0], p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// The project's layout: the stream is the key (the hash of its name, mixed with the run's seed), the counter is (global
// step, global token index, element).
constexpr std::array<uint32_t, 4> philox(uint64_t stream, uint32_t step, uint32_t token, uint32_t element) {
  return philox4x32({step, token, element, 0}, {static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)});
}

// The top 24 bits as a float in [0, 1).
constexpr float uniform_from_bits(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace hierarchos
