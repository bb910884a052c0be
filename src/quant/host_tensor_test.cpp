#include "tensor/host_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace hierarchos {
namespace {

TEST(HostTensor, OwnsZeroes) {
  HostTensor t(DType::F32, {2, 3});
  EXPECT_EQ(t.bytes().size(), 24u);
  EXPECT_EQ(t.to_doubles(), std::vector<double>(6, 0.0));
  t.mutable_data<float>()[4] = 2;
  EXPECT_EQ(t.data<float>()[4], 2);
}

TEST(HostTensor, BytesNeeded) {
  EXPECT_EQ(HostTensor::bytes_needed(DType::BF16, {}, Storage::Plain), 2);
  EXPECT_EQ(HostTensor::bytes_needed(DType::F32, {3, 64}, Storage::Q4_1), 3 * 2 * 20);
  EXPECT_EQ(HostTensor::bytes_needed(DType::F32, {0, 64}, Storage::Q4_1), 0);
  EXPECT_THROW(HostTensor::bytes_needed(DType::F32, {3, 48}, Storage::Q4_1), UserError);
  EXPECT_THROW(HostTensor::bytes_needed(DType::F32, {}, Storage::Q4_1), UserError);
  EXPECT_THROW(HostTensor::bytes_needed(DType::F64, {int64_t{1} << 61}, Storage::Plain), UserError);
}

TEST(HostTensor, BorrowedMemory) {
  auto owner = std::make_shared<std::array<std::byte, 9>>();
  const float v = 1.5f;
  std::memcpy(owner->data() + 5, &v, sizeof(v));
  HostTensor t(DType::F32, {1}, Storage::Plain, std::span(*owner).subspan(5, 4), owner);
  const std::weak_ptr<void> alive = owner;
  owner.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(t.to_doubles()[0], 1.5);  // unaligned
  EXPECT_EQ(t.cast(DType::F16).data<uint16_t>()[0], 0x3E00);
  EXPECT_THROW(t.mutable_bytes(), UserError);
  EXPECT_THROW(HostTensor(DType::F32, {2}, Storage::Plain, t.bytes(), nullptr), UserError);
  t = {};
  EXPECT_TRUE(alive.expired());
}

TEST(HostTensor, CastsRoundOnce) {
  const double tie = 1 + 0x1p-11;  // half way between two halves
  const auto wide = HostTensor::from<double>(DType::F64, {4}, {tie, tie + 0x1p-52, 65520, -1e300});
  EXPECT_EQ(wide.cast(DType::F16).to_doubles(), (std::vector<double>{1, 1 + 0x1p-10, HUGE_VAL, -HUGE_VAL}));
  EXPECT_EQ(wide.cast(DType::BF16).to_doubles()[0], 1);
  EXPECT_EQ(wide.cast(DType::F32).to_doubles()[3], -HUGE_VAL);
  const auto integers = HostTensor::from<int64_t>(DType::I64, {2}, {(int64_t{1} << 54) + (int64_t{1} << 30) + 1, -7});
  EXPECT_EQ(integers.cast(DType::F32).to_doubles()[0], 0x1p54 + 0x1p31);  // by way of double it would be a tie
  EXPECT_THROW(integers.cast(DType::I8), UserError);
}

TEST(HostTensor, CastsToIntegers) {
  const auto t = HostTensor::from<float>(DType::F32, {3}, {-128.75f, 127.9f, -0.5f});
  EXPECT_EQ(t.cast(DType::I8).to_doubles(), (std::vector<double>{-128, 127, 0}));
  EXPECT_EQ(t.cast(DType::Bool).to_doubles(), (std::vector<double>{1, 1, 1}));
  EXPECT_THROW(t.cast(DType::U8), UserError);
  EXPECT_THROW(HostTensor::from<float>(DType::F32, {1}, {128}).cast(DType::I8), UserError);
  EXPECT_THROW(HostTensor::from<float>(DType::F32, {1}, {NAN}).cast(DType::I32), UserError);
  EXPECT_THROW(HostTensor::from<double>(DType::F64, {1}, {0x1p63}).cast(DType::I64), UserError);
  EXPECT_THROW(HostTensor::from<int64_t>(DType::I64, {1}, {int64_t{1} << 31}).cast(DType::I32), UserError);
  EXPECT_EQ(HostTensor::from<int64_t>(DType::I64, {1}, {49151}).cast(DType::I32).data<int32_t>()[0], 49151);
  EXPECT_EQ(HostTensor::from<double>(DType::F64, {1}, {-0x1p63}).cast(DType::I64).data<int64_t>()[0],
            std::numeric_limits<int64_t>::min());
}

TEST(HostTensor, ValuesOfBlocks) {
  HostTensor t(DType::F32, {1, 32}, Storage::Q8_0);
  const uint16_t half = 0x3800;  // 0.5
  std::memcpy(t.mutable_bytes().data(), &half, 2);
  t.mutable_bytes()[2 + 7] = std::byte{0xFE};  // -2
  EXPECT_EQ(t.to_doubles()[7], -1);
  EXPECT_EQ(t.cast(DType::F32).storage(), Storage::Plain);
  EXPECT_EQ(t.cast(DType::BF16).to_doubles()[7], -1);
}

TEST(HostTensor, From) {
  EXPECT_THROW(HostTensor::from<float>(DType::F32, {2}, {1}), UserError);
  EXPECT_THROW(HostTensor::from<float>(DType::F16, {1}, {1}), UserError);
}

}  // namespace
}  // namespace hierarchos
