#include "quant/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace hierarchos {
namespace {

void put_half(std::byte* at, float v) {
  const uint16_t bits = f32_to_f16(v);
  std::memcpy(at, &bits, sizeof(bits));
}

// tools/quant_reference.py: blocks of bytes and what the gguf package decodes from them.
TEST(Blocks, DecodeAsTheReference) {
  std::ifstream file(HIERARCHOS_TEST_DATA "/quant_blocks.json");
  const auto cases = nlohmann::json::parse(file);
  const std::map<std::string, Storage> storages = {
      {"Q4_0", Storage::Q4_0}, {"Q4_1", Storage::Q4_1}, {"Q5_0", Storage::Q5_0},    {"Q5_1", Storage::Q5_1},
      {"Q8_0", Storage::Q8_0}, {"Q2_K", Storage::Q2_K}, {"Q3_K", Storage::Q3_K},    {"Q4_K", Storage::Q4_K},
      {"Q5_K", Storage::Q5_K}, {"Q6_K", Storage::Q6_K}, {"IQ4_NL", Storage::IQ4_NL}};
  ASSERT_EQ(cases.size(), storages.size());
  for (const auto& c : cases) {
    const Storage storage = storages.at(c["type"]);
    std::vector<std::byte> bytes;
    for (int b : c["bytes"]) bytes.push_back(static_cast<std::byte>(b));
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), block_bytes(storage)) << c["type"];
    std::vector<float> got(static_cast<size_t>(block_elements(storage)));
    dequantize(storage, bytes, got);
    const auto expected = c["values"].get<std::vector<float>>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i]) << c["type"] << " " << i;
  }
}

TEST(Blocks, EncodeAsTheReference) {
  std::ifstream file(HIERARCHOS_TEST_DATA "/quant_blocks.json");
  for (const auto& c : nlohmann::json::parse(file)) {
    if (!c.contains("encoded")) continue;
    const Storage storage = c["type"] == "Q4_0" ? Storage::Q4_0 : c["type"] == "Q4_1" ? Storage::Q4_1 : Storage::Q8_0;
    const auto values = c["source"].get<std::vector<float>>();
    std::vector<std::byte> got(c["encoded"].size());
    quantize(storage, values, got);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(static_cast<int>(got[i]), c["encoded"][i].get<int>()) << c["type"] << " " << i;
  }
}

TEST(Blocks, DecodesByHand) {
  std::vector<float> out(32);
  std::vector<std::byte> q4_0(18);
  put_half(q4_0.data(), 2);
  q4_0[2] = std::byte{0xF0};  // element 0 is 0 - 8, element 16 is 15 - 8
  dequantize(Storage::Q4_0, q4_0, out);
  EXPECT_EQ(out[0], -16);
  EXPECT_EQ(out[16], 14);

  std::vector<std::byte> q5_1(24);
  put_half(q5_1.data(), 0.5f);
  put_half(q5_1.data() + 2, 10);
  q5_1[4 + 2] = std::byte{1};  // the fifth bit of element 16
  q5_1[8] = std::byte{0x3A};   // its lower four are 3, those of element 0 are 10
  dequantize(Storage::Q5_1, q5_1, out);
  EXPECT_EQ(out[0], 15);
  EXPECT_EQ(out[16], 19.5f);

  std::vector<std::byte> iq4(18);
  put_half(iq4.data(), 1);
  iq4[2] = std::byte{0x8F};
  dequantize(Storage::IQ4_NL, iq4, out);
  EXPECT_EQ(out[0], 113);
  EXPECT_EQ(out[16], 1);
  EXPECT_EQ(out[1], -127);
}

TEST(Blocks, EncodesExtremes) {
  for (const Storage storage : {Storage::Q4_0, Storage::Q4_1, Storage::Q8_0}) {
    std::vector<std::byte> block(static_cast<size_t>(block_bytes(storage)));
    std::vector<float> back(32);
    for (const float v : {0.0f, 1e-44f, 1e-38f, 30000.0f}) {
      std::vector<float> values(32, v);
      values[3] = -v;
      quantize(storage, values, block);
      dequantize(storage, block, back);
      EXPECT_NEAR(back[0], v, 0.2 * static_cast<double>(v) + 1e-7) << name_of(storage);
    }
    for (const float bad : {HUGE_VALF, NAN, 1e38f}) {
      std::vector<float> values(32, 1);
      values[5] = bad;
      EXPECT_THROW(quantize(storage, values, block), UserError) << name_of(storage) << " " << bad;
    }
  }
}

TEST(Blocks, SizesMustFit) {
  std::vector<std::byte> blocks(40);
  std::vector<float> out(64);
  EXPECT_NO_THROW(dequantize(Storage::Q4_1, blocks, out));
  EXPECT_THROW(dequantize(Storage::Q4_0, blocks, out), UserError);
  EXPECT_THROW(dequantize(Storage::Q4_1, blocks, std::span(out).first(32)), UserError);
  EXPECT_THROW(dequantize(Storage::Plain, blocks, out), UserError);
  std::vector<std::byte> big(144);
  EXPECT_THROW(quantize(Storage::Q4_K, std::vector<float>(256), big), UnsupportedError);
  EXPECT_THROW(HostTensor(DType::F32, {3, 40}, Storage::Q4_1), UserError);
}

TEST(Blocks, DequantizedTensor) {
  HostTensor blocks(DType::F32, {2, 64}, Storage::Q4_1);
  put_half(blocks.mutable_bytes().data() + 2, 3);  // the first block's minimum
  const HostTensor plain = dequantized(blocks);
  EXPECT_EQ(plain.shape(), Shape({2, 64}));
  EXPECT_EQ(plain.data<float>()[31], 3);
  EXPECT_EQ(plain.data<float>()[32], 0);
  EXPECT_EQ(dequantized(plain).bytes().data(), plain.bytes().data());
}

}  // namespace
}  // namespace hierarchos
