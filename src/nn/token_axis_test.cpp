#include "nn/token_axis.h"

#include <gtest/gtest.h>

namespace hierarchos::nn {
namespace {

using Ints = std::vector<int32_t>;

// Two segments of three and two rows, then padding.
const Ints kPositions = {0, 1, 2, 0, 1, 0};
const Ints kSegments = {0, 0, 0, 1, 1, -1};

TEST(AttentionRanges, Causal) {
  EXPECT_EQ(attention_ranges({}, kPositions, kSegments), (Ints{0, 1, 0, 2, 0, 3, 3, 4, 3, 5, 0, 0}));
}

TEST(AttentionRanges, Window) {
  MaskSpec mask;
  mask.window = 2;
  EXPECT_EQ(attention_ranges(mask, kPositions, kSegments), (Ints{0, 1, 0, 2, 1, 3, 3, 4, 3, 5, 0, 0}));
}

TEST(AttentionRanges, Chunk) {
  MaskSpec mask;
  mask.chunk = 2;
  EXPECT_EQ(attention_ranges(mask, kPositions, kSegments), (Ints{0, 1, 0, 2, 2, 3, 3, 4, 3, 5, 0, 0}));
}

TEST(AttentionRanges, Bidirectional) {
  MaskSpec mask;
  mask.causal = false;
  EXPECT_EQ(attention_ranges(mask, kPositions, kSegments), (Ints{0, 3, 0, 3, 0, 3, 3, 5, 3, 5, 0, 0}));
}

TEST(AttentionRanges, CachedKeysAreByPosition) {
  MaskSpec mask;
  mask.cached = true;
  EXPECT_EQ(attention_ranges(mask, Ints{7, 8, 3}, Ints{0, 0, 1}), (Ints{0, 8, 0, 9, 0, 4}));
  mask.window = 4;
  EXPECT_EQ(attention_ranges(mask, Ints{7, 8, 3}, Ints{0, 0, 1}), (Ints{4, 8, 5, 9, 0, 4}));
}

TEST(SortedOrder, IsStable) {
  Graph graph;
  graph.input("ids", Type(DType::I32, {5}));
  sorted_order(graph, "ids", 5);
  const HostTensor ids = HostTensor::from<int32_t>(DType::I32, {5}, {3, 1, 3, -1, 1});
  const HostTensor order = graph.derived_inputs()[0].compute({&ids, 1});
  EXPECT_EQ(Ints(order.data<int32_t>().begin(), order.data<int32_t>().end()), (Ints{3, 1, 4, 0, 2}));
}

}  // namespace
}  // namespace hierarchos::nn
