#include "base/rng.h"

#include <gtest/gtest.h>

namespace hierarchos {
namespace {

using Words = std::array<uint32_t, 4>;

// kat_vectors of Random123.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, CounterLayout) {
  EXPECT_EQ(philox(0x299f31d0a4093822u, 7, 11, 3), philox4x32({7, 11, 3, 0}, {0xa4093822, 0x299f31d0}));
}

TEST(Fnv, KnownAnswers) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);
}

// The published sequence of seed 1234567.
TEST(SplitMix, KnownAnswers) {
  uint64_t state = 1234567, index = 0;
  for (const uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
                                  16408922859458223821u}) {
    EXPECT_EQ(splitmix64(state), expected);
    EXPECT_EQ(splitmix64_at(1234567, index++), expected);
  }
}

// The stream that the golden cases' weights are drawn from.
TEST(SplitMix, GoldenStream) {
  const uint64_t seed = fnv1a64("llama/0:lm_head.weight");
  EXPECT_EQ(seed, 0x6cd300a2186c9019u);
  EXPECT_EQ(splitmix64_at(seed, 0), 10226913758799652340u);
  EXPECT_EQ(splitmix64_at(seed, 1), 4441966846220463181u);
}

TEST(Uniform, Range) {
  EXPECT_EQ(uniform_from_bits(0), 0.0f);
  EXPECT_EQ(uniform_from_bits(0xff), 0.0f);
  EXPECT_EQ(uniform_from_bits(0x80000000), 0.5f);
  EXPECT_EQ(uniform_from_bits(0xffffffff), 1.0f - 0x1p-24f);
}

}  // namespace
}  // namespace hierarchos
