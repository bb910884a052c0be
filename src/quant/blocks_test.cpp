#include "quant/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace hierarchos {
namespace {

// tools/quant_reference.py: blocks of bytes and what the gguf package decodes from them.
TEST(Blocks, DecodeAsTheReference) {
  std::ifstream file(HIERARCHOS_TEST_DATA "/quant_blocks.json");
  const auto cases = nlohmann::json::parse(file);
  const std::map<std::string, Storage> storages = {
      {"Q4_0", Storage::Q4_0}, {"Q4_1", Storage::Q4_1}, {"Q5_0", Storage::Q5_0}, {"Q5_1", Storage::Q5_1}, {"Q8_0", Storage::Q8_0}, {"Q2_K", Storage::Q2_K},
      {"Q3_K", Storage::Q3_K}, {"Q4_K", Storage::Q4_K}, {"Q5_K", Storage::Q5_K}, {"Q6_K", Storage::Q6_K}, {"IQ4_NL", Storage::IQ4_NL}};
  ASSERT_EQ(cases.size(), storages.size());
  for (const auto& c : cases) {
    const Storage storage = storages.at(c["type"]);
    std::vector<std::byte> bytes;
    for (int b : c["bytes"]) bytes.push_back(static_cast<std::byte>(b));
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), block_bytes(storage)) << c["type"];
    std::vector<float> got(static_cast<size_t>(block_elements(storage)));
    dequantize(storage, bytes, got);
    const auto expected = c["values"].get<std::vector<float>>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6f * std::abs(expected[i]) + 1e-9f) << c["type"] << " " << i;
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
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(static_cast<int>(got[i]), c["encoded"][i].get<int>()) << c["type"] << " " << i;
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

}  // namespace
}  // namespace hierarchos
