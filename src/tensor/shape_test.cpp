#include "tensor/shape.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/error.h"

namespace hierarchos {
namespace {

TEST(Shape, Basics) {
  const Shape s = {2, 24, 96};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s.elements(), 2 * 24 * 96);
  EXPECT_EQ(s.rows(), 48);
  EXPECT_EQ(s.back(), 96);
  EXPECT_EQ(s[-2], 24);
  EXPECT_EQ(s.to_string(), "[2, 24, 96]");
  EXPECT_EQ(s.contiguous_strides(), (std::vector<int64_t>{24 * 96, 96, 1}));
  EXPECT_EQ(s, Shape(std::vector<int64_t>{2, 24, 96}));
  EXPECT_NE(s, Shape({2, 24}));
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().rows(), 1);
  EXPECT_EQ(Shape({0, 5}).elements(), 0);
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_THROW(Shape({-1}), UserError);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1}), UserError);
  EXPECT_THROW(Shape({int64_t{1} << 32, int64_t{1} << 32}), UserError);
  EXPECT_THROW(Shape({0, int64_t{1} << 32, int64_t{1} << 32}), UserError);  // its strides would overflow
}

}  // namespace
}  // namespace hierarchos
