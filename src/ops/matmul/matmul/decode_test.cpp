// Vector decoders against quant/blocks.h, bit for bit, on arbitrary bytes.
#include "ops/matmul/matmul/decode.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "quant/blocks.h"

namespace hierarchos {
namespace {

TEST(DecodeBlocks, GivesTheValuesOfTheCodecs) {
  std::mt19937 random(3);
  for (Storage storage : {Storage::Q4_0, Storage::Q4_1, Storage::Q5_0, Storage::Q5_1, Storage::Q8_0, Storage::Q2_K,
                          Storage::Q3_K, Storage::Q4_K, Storage::Q5_K, Storage::Q6_K, Storage::IQ4_NL}) {
    constexpr int64_t kCount = 37;
    std::vector<std::byte> blocks(static_cast<size_t>(kCount * block_bytes(storage)));
    // Exponents below the largest, so that no scale is infinite or NaN.
    for (std::byte& b : blocks) b = static_cast<std::byte>(random() & 0xBB);
    std::vector<float> expected(static_cast<size_t>(kCount * block_elements(storage))), got(expected.size());
    dequantize(storage, blocks, expected);
    gemm::decode_blocks(storage, blocks.data(), kCount, got.data());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]) << name_of(storage) << " element " << i;
  }
}

}  // namespace
}  // namespace hierarchos
