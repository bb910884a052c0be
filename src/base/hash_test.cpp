#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace hierarchos {
namespace {

// Of nothing, seed 0, as xxHash's own sanity checks have them.
TEST(Hash, KnownAnswers) {
  EXPECT_EQ(hash64({}), 0xEF46DB3751D8E999u);
  EXPECT_EQ(hash128({}), (Hash128{0x6001C324468D497Fu, 0x99AA06D3014798D8u}));
  EXPECT_NE(hash64({}, 1), hash64({}, 2));
}

TEST(Hasher, TellsStructuresApart) {
  const auto of = [](auto... parts) {
    Hasher h;
    (h.add(parts), ...);
    return h.value();
  };
  EXPECT_EQ(of(1, 2), of(int64_t{1}, uint8_t{2}));
  EXPECT_EQ(of(-1), of(int64_t{-1}));
  EXPECT_NE(of(1, 2), of(2, 1));
  EXPECT_NE(of(1), of(1.0));
  EXPECT_NE(of(0.0), of(-0.0));
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(of(""), of());
  EXPECT_NE(of(0), of());
  EXPECT_NE(of(0), of(0, 0));
  EXPECT_NE(Hasher(1).value(), Hasher(2).value());

  std::set<uint64_t> seen;  // small shapes, as kernels' requests have them
  for (int64_t a = 0; a < 64; ++a)
    for (int64_t b = 0; b < 64; ++b)
      for (int64_t c = 0; c < 16; ++c) seen.insert(of(a, b, c));
  EXPECT_EQ(seen.size(), 64u * 64u * 16u);
}

}  // namespace
}  // namespace hierarchos
