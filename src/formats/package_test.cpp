#include "formats/package.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numbers>

#include "base/os/file.h"
#include "formats/gguf_model.h"
#include "formats/testing/gguf_builder.h"
#include "quant/blocks.h"

namespace hierarchos::formats {
namespace {

using Builder = testing::GgufBuilder;

template <typename E, typename F>
void expect_error(F f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "nothing thrown; expected " << text;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

class PackageFolder : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) { write_file_atomic(folder_.path() / name, text); }
  void put_tensors(const std::string& name, const std::vector<std::string>& tensors) {
    std::vector<std::pair<std::string, HostTensor>> all;
    for (const std::string& t : tensors)
      all.emplace_back(t, HostTensor::from<float>(DType::F32, {1}, {static_cast<float>(t.size())}));
    write_safetensors(folder_.path() / name, all);
  }
  std::shared_ptr<const Package> open() { return Package::open(folder_.path()); }
  TemporaryDirectory folder_;
};

TEST_F(PackageFolder, OneFile) {
  put("config.json", R"({"model_type": "llama"})");
  put("generation_config.json", R"({"eos_token_id": 2})");
  put_tensors("model.safetensors", {"b", "aa"});
  const auto p = open();
  EXPECT_EQ(p->config()["model_type"], "llama");
  EXPECT_EQ(p->generation_config()["eos_token_id"], 2);
  EXPECT_EQ(p->names(), (std::vector<std::string>{"aa", "b"}));
  EXPECT_TRUE(p->has("aa"));
  EXPECT_FALSE(p->has("c"));
  EXPECT_EQ(p->tensor("aa").to_doubles()[0], 2);
  EXPECT_EQ(p->info("aa").shape, Shape({1}));
  EXPECT_EQ(p->info("aa").dtype, DType::F32);
  EXPECT_EQ(p->gguf(), nullptr);
  expect_error<UserError>([&] { p->tensor("c"); }, "there is no tensor c");
}

TEST_F(PackageFolder, Shards) {
  put("config.json", "{}");
  put_tensors("model-00001-of-00002.safetensors", {"a", "bb"});
  put_tensors("model-00002-of-00002.safetensors", {"ccc"});
  const std::string index = R"({"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors",
      "bb": "model-00001-of-00002.safetensors", "ccc": "model-00002-of-00002.safetensors"}})";
  put("model.safetensors.index.json", index);
  EXPECT_EQ(open()->tensor("ccc").to_doubles()[0], 3);
  EXPECT_EQ(open()->names().size(), 3u);
  EXPECT_TRUE(open()->generation_config().is_null());

  put_tensors("model-00002-of-00002.safetensors", {"x"});
  expect_error<DataError>([&] { open(); }, "tensor ccc is missing");
  put_tensors("model-00002-of-00002.safetensors", {"ccc", "a"});
  expect_error<DataError>([&] { open(); }, "tensor a is in ");
  put_tensors("model-00002-of-00002.safetensors", {"ccc", "new"});
  expect_error<DataError>([&] { open(); }, "tensor new is not in model.safetensors.index.json");
  put("model.safetensors.index.json", R"({"weight_map": {"a": "model-00003-of-00003.safetensors"}})");
  expect_error<UserError>([&] { open(); }, "model-00003-of-00003.safetensors is missing");
  put_tensors("model-00002-of-00002.safetensors", {"ccc"});
  put("model.safetensors.index.json", R"({"weight_map": {"a": "model-00001-of-00002.safetensors",
      "bb": "model-00002-of-00002.safetensors", "ccc": "model-00002-of-00002.safetensors"}})");
  expect_error<DataError>([&] { open(); }, "tensor bb is missing");
  for (const char* outside : {"../x.safetensors", "/etc/passwd", "..", "", "a\\\\b", "c:d", ".x", "a\\u0000"}) {
    put("model.safetensors.index.json", std::string(R"({"weight_map": {"a": ")") + outside + "\"}}");
    expect_error<DataError>([&] { open(); }, "is no file of the folder");
  }
  for (const char* bad : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": {"a": 1}})", "{"}) {
    put("model.safetensors.index.json", bad);
    expect_error<DataError>([&] { open(); }, "model.safetensors.index.json");
  }
}

TEST_F(PackageFolder, WhatIsMissing) {
  expect_error<UserError>([&] { Package::open(folder_.path() / "none"); }, "no such file");
  expect_error<UserError>([&] { open(); }, "no config.json");
  put("config.json", "{}");
  expect_error<UserError>([&] { open(); }, "neither model.safetensors");
  put("pytorch_model.bin", "x");
  expect_error<UnsupportedError>([&] { open(); }, "pytorch_model.bin");
  put("model.safetensors", "junk");
  expect_error<DataError>([&] { open(); }, "model.safetensors");
  expect_error<UserError>([&] { Package::open(folder_.path() / "model.safetensors"); }, "the folder");
  expect_error<DataError>([&] { Package::open(folder_.path() / "pytorch_model.bin"); }, "magic number");
  put("config.json", "[]");
  expect_error<DataError>([&] { open(); }, "config.json");
}

std::string values(size_t count, float first = 0) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += Builder::raw(first + static_cast<float>(i));
  return out;
}

// Two layers, hidden 64, 2 heads of 32, one key-value head, 3 tokens.
Builder llama() {
  Builder b;
  b.pair("general.architecture", "llama").pair("llama.block_count", 2u).pair("llama.context_length", 512u);
  b.pair("llama.embedding_length", 64u).pair("llama.feed_forward_length", 96u).pair("llama.attention.head_count", 2u);
  b.pair("llama.attention.head_count_kv", 1u).pair("llama.attention.layer_norm_rms_epsilon", 0.5f);
  b.pair("llama.rope.freq_base", 50000.0f)
      .pair("tokenizer.ggml.bos_token_id", 1u)
      .pair("tokenizer.ggml.eos_token_id", 2u);
  b.tensor("token_embd.weight", {64, 3}, 0, values(192));
  return b;
}

class GgufPackage : public ::testing::Test {
 protected:
  std::shared_ptr<const Package> open(const Builder& b) {
    write_file_atomic(folder_.path() / "m.gguf", b.bytes());
    return Package::open(folder_.path() / "m.gguf");
  }
  TemporaryDirectory folder_;
};

TEST_F(GgufPackage, ConfigurationAndNames) {
  Builder b = llama();
  b.tensor("output_norm.weight", {64}, 0, values(64));
  b.tensor("blk.1.ffn_down.weight", {96, 64}, 0, values(64 * 96))
      .tensor("blk.0.attn_norm.weight", {64}, 0, values(64, 7));
  const auto p = open(b);
  const nlohmann::json expected = {{"model_type", "llama"},
                                   {"architectures", {"LlamaForCausalLM"}},
                                   {"hidden_act", "silu"},
                                   {"hidden_size", 64},
                                   {"num_hidden_layers", 2},
                                   {"intermediate_size", 96},
                                   {"num_attention_heads", 2},
                                   {"num_key_value_heads", 1},
                                   {"head_dim", 32},
                                   {"max_position_embeddings", 512},
                                   {"rms_norm_eps", 0.5},
                                   {"rope_theta", 50000.0},
                                   {"vocab_size", 3},
                                   {"bos_token_id", 1},
                                   {"eos_token_id", 2},
                                   {"pad_token_id", nullptr},
                                   {"attention_bias", false},
                                   {"mlp_bias", false},
                                   {"tie_word_embeddings", true}};
  EXPECT_EQ(p->config(), expected);
  EXPECT_TRUE(p->generation_config().is_null());
  EXPECT_EQ(p->names(), (std::vector<std::string>{"model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                                                  "model.layers.1.mlp.down_proj.weight", "model.norm.weight"}));
  EXPECT_EQ(p->info("model.layers.1.mlp.down_proj.weight").shape, Shape({64, 96}));
  EXPECT_EQ(p->tensor("model.layers.0.input_layernorm.weight").to_doubles()[1], 8);
  EXPECT_NE(p->gguf(), nullptr);
  b.tensor("output.weight", {64, 3}, 0, values(192)).pair("tokenizer.ggml.eot_token_id", 5u);
  b.tensor("blk.0.attn_q.bias", {64}, 0, values(64));
  EXPECT_EQ(open(b)->config()["tie_word_embeddings"], false);
  EXPECT_EQ(open(b)->config()["attention_bias"], true);
  EXPECT_EQ(open(b)->generation_config()["eos_token_id"], (nlohmann::json{2, 5}));
}

// As LlamaModel.permute of llama.cpp's converter: reshape(heads, 2, width / 2, …).swapaxes(1, 2).
template <typename T>
std::vector<T> permute(const std::vector<T>& rows, size_t heads) {
  std::vector<T> out;
  const size_t width = rows.size() / heads;
  for (size_t h = 0; h < heads; ++h)
    for (size_t i = 0; i < width / 2; ++i)
      for (size_t j = 0; j < 2; ++j) out.push_back(rows[h * width + j * (width / 2) + i]);
  return out;
}

TEST_F(GgufPackage, RowsOfQueriesAndKeysAreInOrder) {
  std::vector<float> row(64), all;
  std::vector<std::string> q;  // rows of Q4_1 blocks
  for (int r = 0; r < 64; ++r) {
    for (size_t i = 0; i < 64; ++i) row[i] = static_cast<float>(r) + static_cast<float>(i % 16) / 16;
    std::vector<std::byte> blocks(40);
    quantize(Storage::Q4_1, row, blocks);
    q.emplace_back(reinterpret_cast<const char*>(blocks.data()), blocks.size());
  }
  const auto joined = [](const std::vector<std::string>& parts) {
    std::string out;
    for (const auto& s : parts) out += s;
    return out;
  };
  std::vector<std::string> k(q.begin(), q.begin() + 32);
  std::vector<std::string> bias;
  for (int r = 0; r < 64; ++r) bias.push_back(Builder::raw(static_cast<float>(r)));
  Builder b = llama();
  b.tensor("blk.0.attn_q.weight", {64, 64}, 3, joined(permute(q, 2)));
  b.tensor("blk.0.attn_k.weight", {64, 32}, 3, joined(permute(k, 1)));
  b.tensor("blk.0.attn_v.weight", {64, 32}, 3, joined(k));
  b.tensor("blk.0.attn_q.bias", {64}, 0, joined(permute(bias, 2)));
  const auto p = open(b);
  const auto text = [](const HostTensor& t) {
    return std::string(reinterpret_cast<const char*>(t.bytes().data()), t.bytes().size());
  };
  const std::string layer = "model.layers.0.self_attn.";
  EXPECT_EQ(text(p->tensor(layer + "q_proj.weight")), joined(q));
  EXPECT_EQ(p->tensor(layer + "q_proj.weight").storage(), Storage::Q4_1);
  EXPECT_EQ(text(p->tensor(layer + "k_proj.weight")), joined(k));
  EXPECT_EQ(text(p->tensor(layer + "v_proj.weight")), joined(k));
  EXPECT_EQ(text(p->tensor(layer + "q_proj.bias")), joined(bias));
  EXPECT_NEAR(p->tensor(layer + "q_proj.weight").to_doubles()[17 * 64 + 3], 17 + 3.0 / 16, 0.05);
  EXPECT_EQ(p->info(layer + "q_proj.weight").storage, Storage::Q4_1);
}

TEST_F(GgufPackage, WhatIsNotHonoured) {
  Builder other;
  other.pair("general.architecture", "mpt");
  expect_error<UnsupportedError>([&] { open(other); }, "\"mpt\"");
  expect_error<DataError>([&] { open(Builder()); }, "general.architecture");
  expect_error<UnsupportedError>([&] { open(llama().pair("llama.expert_group_count", 8u)); },
                                 "llama.expert_group_count");
  expect_error<UnsupportedError>([&] { open(llama().pair("llama.rope.dimension_count", 16u)); },
                                 "rope.dimension_count");
  expect_error<UnsupportedError>([&] { open(llama().pair("llama.attention.value_length", 16u)); }, "value_length");
  expect_error<DataError>([&] { open(llama().pair("llama.vocab_size", 4u)); }, "vocab_size is 4");
  expect_error<UnsupportedError>([&] { open(llama().pair("split.count", 3u)); }, "--merge");
  expect_error<UnsupportedError>([&] { open(llama().tensor("blk.0.odd.weight", {1}, 0, values(1))); },
                                 "blk.0.odd.weight");
  expect_error<UnsupportedError>([&] { open(llama().tensor("blk.0", {1}, 0, values(1))); }, "blk.0");
  expect_error<UnsupportedError>(
      [&] { open(llama().pair("llama.rope.scaling.type", "odd").pair("llama.rope.scaling.factor", 2.0f)); }, "\"odd\"");
  const auto experts = [](uint64_t count, const std::string& data) {
    Builder b = llama();
    b.pair("llama.expert_count", 2u).pair("llama.expert_used_count", 1u);
    return b.tensor("blk.0.ffn_up_exps.weight", {32, data.empty() ? 0u : 1u, count}, 0, data);
  };
  EXPECT_EQ(open(experts(2, values(64)))->tensor("model.layers.0.block_sparse_moe.experts.1.w3.weight").to_doubles()[0],
            32);
  // No bytes, so its extents say nothing about the file's size.
  expect_error<DataError>([&] { open(experts(uint64_t{1} << 40, "")); }, "2 entries are expected");
  expect_error<DataError>([&] { open(experts(3, values(96))); }, "2 entries are expected");
  const auto p = open(llama().tensor("blk.0.attn_q.weight", {4, 3}, 0, values(12)));
  expect_error<DataError>([&] { p->tensor("model.layers.0.self_attn.q_proj.weight"); }, "blk.0.attn_q.weight");
}

TEST_F(GgufPackage, RopeScaling) {
  const auto linear = open(llama().pair("llama.rope.scaling.type", "linear").pair("llama.rope.scaling.factor", 4.0f));
  EXPECT_EQ(linear->config()["rope_scaling"], (nlohmann::json{{"rope_type", "linear"}, {"factor", 4.0}}));
  const auto untyped = open(llama().pair("llama.rope.scaling.factor", 4.0f));  // llama.cpp's default type is linear
  EXPECT_EQ(untyped->config()["rope_scaling"], linear->config()["rope_scaling"]);
  const auto yarn = open(llama()
                             .pair("llama.rope.scaling.type", "yarn")
                             .pair("llama.rope.scaling.factor", 4.0f)
                             .pair("llama.rope.scaling.original_context_length", 128u));
  EXPECT_EQ(yarn->config()["rope_scaling"]["original_max_position_embeddings"], 128);

  // As the converter writes them for Llama 3.1: factor 8, 1, 4, 8192.
  std::string divisors;
  for (int i = 0; i < 16; ++i) {
    const double wavelength = 2 * std::numbers::pi * std::pow(50000.0, i / 16.0), smooth = (8192 / wavelength - 1) / 3;
    divisors += Builder::raw(static_cast<float>(wavelength < 2048   ? 1
                                                : wavelength > 8192 ? 8
                                                                    : 1 / ((1 - smooth) / 8 + smooth)));
  }
  const auto llama3 = open(llama().tensor("rope_freqs.weight", {16}, 0, divisors));
  EXPECT_EQ(llama3->config()["rope_scaling"], (nlohmann::json{{"rope_type", "llama3"},
                                                              {"factor", 8.0},
                                                              {"low_freq_factor", 1.0},
                                                              {"high_freq_factor", 4.0},
                                                              {"original_max_position_embeddings", 8192}}));
  EXPECT_EQ(llama3->names(), std::vector<std::string>{"model.embed_tokens.weight"});
  expect_error<UnsupportedError>([&] { open(llama().tensor("rope_freqs.weight", {16}, 0, values(16, 1))); },
                                 "rope_freqs.weight");
  expect_error<UnsupportedError>([&] { open(llama().tensor("rope_freqs.weight", {8}, 0, values(8, 1))); },
                                 "rope_freqs.weight");
}

}  // namespace
}  // namespace hierarchos::formats
