#include "train/trainer.h"

#include <gtest/gtest.h>

namespace hierarchos::train {
namespace {

using Ids = std::vector<int32_t>;

TEST(Pack, ShiftsLabelsWithinRowsAndPads) {
  const PackedBatch b = pack({{{1, 2, 3}, {-100, 2, 3}}, {{4, 5}, {4, 5}}}, 6, 10);
  EXPECT_EQ(b.input_ids, (Ids{1, 2, 3, 4, 5, -1}));
  EXPECT_EQ(b.positions, (Ids{0, 1, 2, 0, 1, 0}));
  EXPECT_EQ(b.segments, (Ids{0, 0, 0, 1, 1, -1}));
  EXPECT_EQ(b.labels, (Ids{2, 3, -100, 5, -100, -100}));
  EXPECT_EQ(b.scored, 3);
}

TEST(Pack, RefusesWhatDoesNotFit) {
  EXPECT_THROW(pack({{{1, 2, 3}, {1, 2, 3}}}, 2, 10), UserError);
  EXPECT_THROW(pack({{{1, 10}, {1, 1}}}, 4, 10), UserError);
  EXPECT_THROW(pack({{{1, 2}, {1, 10}}}, 4, 10), UserError);
  EXPECT_THROW(pack({{{1, 2}, {1}}}, 4, 10), UserError);
}

}  // namespace
}  // namespace hierarchos::train
