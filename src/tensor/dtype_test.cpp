#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace hierarchos {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(name_of(DType::BF16), "bf16");
  EXPECT_EQ(name_of(DType::Bool), "bool");
  EXPECT_EQ(name_of(Storage::IQ4_NL), "iq4_nl");
  EXPECT_EQ(size_of(DType::F64), 8u);
  EXPECT_EQ(size_of(DType::Bool), 1u);
  EXPECT_EQ(block_elements(Storage::Q6_K), 256);
  EXPECT_EQ(block_bytes(Storage::Q6_K), 210);
  EXPECT_EQ(block_elements(Storage::Plain), 1);
  EXPECT_EQ(block_bytes(Storage::Plain), 0);
  EXPECT_TRUE(is_floating(DType::BF16));
  EXPECT_TRUE(is_integer(DType::Bool));
}

// Every finite value of a 16-bit format in order; between each two neighbours, what rounds to which.
void check_rounding(DType dtype, uint16_t largest, float (*wide)(uint16_t), uint16_t (*narrow)(float)) {
  for (uint32_t bits = 0; bits <= largest; ++bits) {
    const double value = static_cast<double>(wide(static_cast<uint16_t>(bits)));
    ASSERT_EQ(narrow(static_cast<float>(value)), bits);
    ASSERT_EQ(narrow(static_cast<float>(-value)), bits | 0x8000);
    ASSERT_EQ(round_to(dtype, value), value);
    // The largest's neighbour is where the next value would be; half way there rounds to infinity.
    const double step = bits < largest ? static_cast<double>(wide(static_cast<uint16_t>(bits + 1))) - value
                                       : value - static_cast<double>(wide(static_cast<uint16_t>(bits - 1)));
    const double next = bits < largest ? value + step : kInf;
    const double middle = value + step / 2, even = bits % 2 == 0 ? value : next;
    ASSERT_EQ(round_to(dtype, middle), even) << bits;
    ASSERT_EQ(round_to(dtype, -middle), -even) << bits;
    // A float cannot hold these: rounding to float first would give the middle.
    ASSERT_EQ(round_to(dtype, std::nextafter(middle, 0)), value) << bits;
    ASSERT_EQ(round_to(dtype, std::nextafter(middle, kInf)), next) << bits;
    const auto f = static_cast<float>(middle);
    if (static_cast<double>(f) == middle) {
      const uint16_t up = bits < largest ? static_cast<uint16_t>(bits + 1) : narrow(HUGE_VALF);
      ASSERT_EQ(narrow(f), bits % 2 == 0 ? bits : up) << bits;
      ASSERT_EQ(narrow(std::nextafter(f, 0.0f)), bits) << bits;
      ASSERT_EQ(narrow(std::nextafter(f, HUGE_VALF)), up) << bits;
    }
  }
}

TEST(DType, HalfRoundsToNearestEven) {
  check_rounding(DType::F16, 0x7BFF, f16_to_f32, f32_to_f16);
  EXPECT_EQ(f32_to_f16(1.0f), 0x3C00);
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);  // half of the smallest subnormal: to even
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 1);
  EXPECT_EQ(f32_to_f16(0x1.FF8p-15f), 0x03FF);  // the largest subnormal
  EXPECT_EQ(f32_to_f16(0x1.FFCp-15f), 0x0400);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
}

TEST(DType, Bfloat16RoundsToNearestEven) {
  check_rounding(DType::BF16, 0x7F7F, bf16_to_f32, f32_to_bf16);
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(0x1p-134f), 0);
  EXPECT_EQ(f32_to_bf16(0x1.8p-134f), 1);
}

TEST(DType, InfinitiesAndNaN) {
  for (float v : {HUGE_VALF, -HUGE_VALF}) {
    EXPECT_EQ(f16_to_f32(f32_to_f16(v)), v);
    EXPECT_EQ(bf16_to_f32(f32_to_bf16(v)), v);
    EXPECT_EQ(round_to(DType::F16, static_cast<double>(v)), static_cast<double>(v));
  }
  // Every NaN stays one, those whose low bits are all that is set too.
  for (uint32_t bits : {0x7FC00000u, 0x7F800001u, 0xFF800001u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    const auto v = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(v)))) << bits;
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(v)))) << bits;
    EXPECT_EQ(f32_to_f16(v) >> 15, bits >> 31);
    EXPECT_EQ(f32_to_bf16(v) >> 15, bits >> 31);
  }
  for (uint32_t bits = 0x7C01; bits < 0x8000; ++bits) ASSERT_TRUE(std::isnan(f16_to_f32(static_cast<uint16_t>(bits))));
  EXPECT_TRUE(std::isnan(round_to(DType::BF16, std::nan(""))));
}

TEST(DType, RoundToFloatAndIntegers) {
  EXPECT_EQ(round_to(DType::F32, 1 + 0x1p-24), 1.0);
  EXPECT_EQ(round_to(DType::F32, 1 + 0x1.8p-24), 1 + 0x1p-23);
  EXPECT_EQ(round_to(DType::F64, 0.1), 0.1);
  EXPECT_EQ(round_to(DType::I32, 0.1), 0.1);
}

}  // namespace
}  // namespace hierarchos
