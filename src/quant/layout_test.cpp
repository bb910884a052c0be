// Rows in groups of 16 hold what the file's blocks hold, bit for bit.
#include "quant/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "quant/blocks.h"

namespace hierarchos {
namespace {

constexpr Storage kAll[] = {Storage::Q4_0, Storage::Q4_1, Storage::Q5_0, Storage::Q5_1,
                            Storage::Q8_0, Storage::Q4_K, Storage::Q5_K, Storage::Q6_K};

std::vector<std::byte> interleaved(Storage storage, const std::vector<std::byte>& matrix, int64_t rows,
                                   int64_t columns) {
  std::vector<std::byte> out(static_cast<size_t>(rows16_bytes(storage, Shape{rows, columns})));
  const int64_t bytes = rows16_group_bytes(storage, columns);
  for (int64_t g = 0; g * kGroupRows < rows; ++g)
    interleave_group(storage, matrix, rows, columns, g, out.data() + g * bytes);
  return out;
}

TEST(Rows16, BlocksKeepTheirValues) {
  std::mt19937 random(5);
  for (Storage storage : kAll)
    for (int64_t rows : {1, 16, 37}) {
      const int64_t columns = 512;
      std::vector<std::byte> matrix(
          static_cast<size_t>(rows * columns / block_elements(storage) * block_bytes(storage)));
      // Exponents below the largest, so that no scale is infinite or NaN.
      for (std::byte& b : matrix) b = static_cast<std::byte>(random() & 0xBB);
      std::vector<float> expected(static_cast<size_t>(rows * columns)), got(static_cast<size_t>(columns));
      dequantize(storage, matrix, expected);
      const std::vector<std::byte> groups = interleaved(storage, matrix, rows, columns);
      for (int64_t r = 0; r < rows; ++r) {
        decode_row16(storage, groups.data(), columns, r, got.data());
        ASSERT_EQ(std::memcmp(got.data(), expected.data() + r * columns, got.size() * sizeof(float)), 0)
            << name_of(storage) << " row " << r << " of " << rows;
      }
    }
}

TEST(Rows16, Bf16KeepsItsBits) {
  std::mt19937 random(6);
  const int64_t rows = 21, columns = 70;
  std::vector<std::byte> matrix(static_cast<size_t>(rows * columns * 2));
  for (std::byte& b : matrix) b = static_cast<std::byte>(random());
  const std::vector<std::byte> groups = interleaved(Storage::Plain, matrix, rows, columns);
  std::vector<std::byte> got(static_cast<size_t>(columns * 2));
  for (int64_t r = 0; r < rows; ++r) {
    copy_row16(groups.data(), columns, r, got.data());
    EXPECT_EQ(std::memcmp(got.data(), matrix.data() + r * columns * 2, got.size()), 0) << r;
  }
}

// A weight takes the file's bytes, but for the scales of Q4_K and Q5_K, which take a byte each.
TEST(Rows16, TakesNoMoreThanTheFile) {
  const Shape shape{64, 1024};
  for (Storage storage : kAll) {
    const int64_t file = 64 * 1024 / block_elements(storage) * block_bytes(storage);
    const bool grows = storage == Storage::Q4_K || storage == Storage::Q5_K;
    EXPECT_EQ(rows16_bytes(storage, shape), file + (grows ? 64 * 4 * 4 : 0)) << name_of(storage);
  }
}

}  // namespace
}  // namespace hierarchos
