// What families' configurations mean where absence, null and older spellings differ, as the configuration classes of
// transformers 5 read them.
#include <gtest/gtest.h>

#include <cmath>

#include "models/registry.h"
#include "nn/alibi.h"

namespace hierarchos::models {
namespace {

using nlohmann::json;

Description with(const char* model_type, json keys) {
  keys["model_type"] = model_type;
  return describe(keys);
}

template <typename E>
void expect_error(const char* model_type, const json& keys, const std::string& part) {
  try {
    with(model_type, keys);
    FAIL() << model_type << " is accepted, though the error should name " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Families, AbsenceIsNotNull) {
  EXPECT_EQ(with("mistral", {}).window(31), 4096);
  EXPECT_EQ(with("mistral", {{"sliding_window", nullptr}}).window(0), 0);
  EXPECT_EQ(with("mistral", {}).kv_heads, 8);
  EXPECT_EQ(with("mistral", {{"num_key_value_heads", nullptr}}).kv_heads, 32);
  EXPECT_EQ(with("mixtral", {}).window(0), 0);
  EXPECT_EQ(with("gemma2", {}).logit_softcap, 30);
  EXPECT_EQ(with("gemma2", {{"final_logit_softcapping", nullptr}}).logit_softcap, 0);
  EXPECT_EQ(with("gemma2", {{"attn_logit_softcapping", nullptr}}).attention_softcap, 0);
  EXPECT_EQ(with("gemma", {}).padding_idx, 0);
  EXPECT_EQ(with("gemma", {{"pad_token_id", nullptr}}).padding_idx, -1);
  EXPECT_EQ(with("olmo2", {}).padding_idx, 1);
}

TEST(Families, LayerTypes) {
  const Description gemma2 = with("gemma2", {});
  EXPECT_EQ(gemma2.window(0), 4096);
  EXPECT_EQ(gemma2.window(1), 0);
  const Description gemma3 = with("gemma3_text", {{"sliding_window", 512}});
  EXPECT_EQ(gemma3.window(4), 512);
  EXPECT_EQ(gemma3.window(5), 0);
  EXPECT_EQ(gemma3.rope_of(4)->theta, 1e4);
  EXPECT_EQ(gemma3.rope_of(5)->theta, 1e6);
  const json types = {{"num_hidden_layers", 2}, {"layer_types", {"full_attention", "sliding_attention"}}};
  EXPECT_EQ(with("gemma2", types).window(0), 0);
  EXPECT_EQ(with("gemma2", types).window(1), 4096);
  expect_error<UnsupportedError>("gemma2", {{"num_hidden_layers", 1}, {"layer_types", {"chunked_attention"}}},
                                 "layer_types");
  expect_error<DataError>("gemma2", {{"num_hidden_layers", 2}, {"layer_types", {"full_attention"}}}, "layer_types");
  expect_error<DataError>("gemma2", {{"sliding_window", nullptr}}, "sliding_window");
  // A window counts only where it is switched on.
  EXPECT_EQ(with("qwen3", {{"sliding_window", 64}, {"max_window_layers", 0}}).window(0), 0);
  const json on = {{"use_sliding_window", true}, {"sliding_window", 64}, {"max_window_layers", 3}};
  EXPECT_EQ(with("qwen3", on).window(2), 0);
  EXPECT_EQ(with("qwen3", on).window(3), 64);
}

TEST(Families, Qwen2) {
  const Description d = with("qwen2", {});
  EXPECT_EQ(d.vocab_size, 151936);
  EXPECT_EQ(d.kv_heads, 32);
  EXPECT_EQ(d.head_dim, 128);
  EXPECT_EQ(d.rope.theta, 1e4);
  EXPECT_TRUE(d.qkv_bias);
  EXPECT_FALSE(d.o_bias || d.mlp_bias || d.tied_head);
  EXPECT_EQ(d.padding_idx, -1);
  EXPECT_TRUE(d.windows.empty());
  // As Qwen 2.5 0.5B is published.
  const json published = {{"hidden_size", 896},         {"num_attention_heads", 14},   {"num_hidden_layers", 24},
                          {"num_key_value_heads", 2},   {"max_window_layers", 24},     {"rope_theta", 1000000.0},
                          {"sliding_window", 32768},    {"tie_word_embeddings", true}, {"use_mrope", false},
                          {"use_sliding_window", false}};
  EXPECT_EQ(with("qwen2", published).head_dim, 64);
  EXPECT_EQ(with("qwen2", published).rope.theta, 1e6);
  EXPECT_TRUE(with("qwen2", published).windows.empty());
  expect_error<UnsupportedError>("qwen2", {{"use_mrope", true}}, "use_mrope");
  expect_error<UnsupportedError>("qwen2", {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor");
  expect_error<UnsupportedError>("qwen2", {{"attention_bias", false}}, "attention_bias");
  expect_error<UnsupportedError>("qwen2", {{"is_causal", false}}, "is_causal");
  // Windows: from max_window_layers on, unless layer_types says which; never where they are switched off.
  const json on = {{"num_hidden_layers", 3}, {"use_sliding_window", true}, {"max_window_layers", 1}};
  EXPECT_EQ(with("qwen2", on).windows, (std::vector<int64_t>{0, 4096, 4096}));
  json types = on;
  types["layer_types"] = {"sliding_attention", "full_attention", "full_attention"};
  EXPECT_EQ(with("qwen2", types).windows, (std::vector<int64_t>{4096, 0, 0}));
  types["use_sliding_window"] = false;
  expect_error<DataError>("qwen2", types, "use_sliding_window");
  json none = on;
  none["sliding_window"] = nullptr;
  EXPECT_TRUE(with("qwen2", none).windows.empty());
  none["sliding_window"] = 0;
  expect_error<DataError>("qwen2", none, "sliding_window");
}

TEST(Families, GemmaOneSaysGeluAndMeansItsTanhForm) {
  EXPECT_EQ(with("gemma", {{"hidden_act", "gelu"}}).activation, "gelu_pytorch_tanh");
  EXPECT_EQ(with("gemma", {{"hidden_act", "gelu"}, {"hidden_activation", "gelu_pytorch_tanh"}}).activation,
            "gelu_pytorch_tanh");
  expect_error<UnsupportedError>("gemma", {{"hidden_act", "silu"}, {"hidden_activation", "gelu"}}, "hidden_activation");
}

TEST(Families, Gemma3RopesInTheOlderSpelling) {
  const json old = {
      {"rope_theta", 5e5}, {"rope_local_base_freq", 5e3}, {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}};
  const Description d = with("gemma3_text", old);
  EXPECT_EQ(d.rope_of(5)->theta, 5e5);
  EXPECT_EQ(d.rope_of(5)->factor, 8);
  EXPECT_EQ(d.rope_of(5)->kind, nn::RopeKind::Linear);
  EXPECT_EQ(d.rope_of(0)->theta, 5e3);
  EXPECT_EQ(d.rope_of(0)->kind, nn::RopeKind::Default);
  expect_error<UnsupportedError>("gemma3_text", {{"rope_parameters", {{"rope_theta", 1e4}}}},
                                 "rope_parameters.rope_theta");
}

TEST(Families, PartialRotation) {
  EXPECT_EQ(with("gpt_neox", {}).rope.dim, 24);  // a quarter of 96
  EXPECT_EQ(with("gpt_neox", {{"rotary_pct", 0.5}, {"rotary_emb_base", 20000}}).rope.dim, 48);
  EXPECT_EQ(with("stablelm", {}).rope.dim, 20);
  // A key that the reference does not read must not contradict the one that it reads.
  expect_error<UnsupportedError>("gpt_neox", {{"rope_theta", 20000}}, "rope_theta");
  expect_error<UnsupportedError>("mistral", {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor");
  // 5 of 20 channels: three pairs, frequencies by fifths.
  const Description odd = with("gpt_neox", {{"hidden_size", 1280}});
  const std::vector<double> f = nn::rope_inverse_frequencies(odd.rope, 1);
  ASSERT_EQ(f.size(), 3u);
  EXPECT_DOUBLE_EQ(f[2], std::pow(10000.0, -0.8));
}

TEST(Families, Phi3CallsLongropeByOlderNames) {
  json rope = {{"type", "su"}, {"short_factor", json::array()}, {"long_factor", json::array()}};
  for (int i = 0; i < 48; ++i) {
    rope["short_factor"].push_back(1.0);
    rope["long_factor"].push_back(2.0);
  }
  const Description d = with("phi3", {{"rope_scaling", rope}, {"max_position_embeddings", 131072}});
  EXPECT_EQ(d.rope.kind, nn::RopeKind::LongRope);
  EXPECT_EQ(d.rope.original_max_positions, 4096);
  EXPECT_EQ(d.recompute_past, 4096);
  EXPECT_DOUBLE_EQ(d.rope.attention_factor, std::sqrt(1 + std::log(32.0) / std::log(4096.0)));
  expect_error<UnsupportedError>("phi3", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}, "rope_type");
}

TEST(Families, FalconsArchitectures) {
  EXPECT_EQ(with("falcon", {{"num_kv_heads", 8}}).kv_heads, 1);  // counts only in the new architecture
  const Description grouped = with(
      "falcon",
      {{"new_decoder_architecture", true}, {"num_attention_heads", 64}, {"hidden_size", 4096}, {"num_kv_heads", 8}});
  EXPECT_EQ(grouped.kv_heads, 8);
  EXPECT_EQ(grouped.names.mlp_norm, "ln_mlp");
  const json one = {{"new_decoder_architecture", true}, {"num_ln_in_parallel_attn", 1}};
  EXPECT_EQ(with("falcon", one).names.mlp_norm, "");
  EXPECT_EQ(with("falcon", {{"parallel_attn", false}}).names.mlp_norm, "post_attention_layernorm");
  expect_error<UnsupportedError>("falcon", {{"new_decoder_architecture", true}, {"parallel_attn", false}},
                                 "parallel_attn");
  expect_error<UnsupportedError>("falcon", {{"num_ln_in_parallel_attn", 2}}, "num_ln_in_parallel_attn");
  expect_error<UnsupportedError>("falcon", {{"multi_query", false}, {"num_kv_heads", 1}}, "num_kv_heads");
}

TEST(Families, GraniteFactors) {
  const Description d = with("granite", {{"logits_scaling", 8.0}});
  EXPECT_EQ(d.logit_scale, 0.125);
  EXPECT_EQ(d.attention_scale[0], 1);  // the class's default, not 1/√d
  expect_error<DataError>("granite", {{"logits_scaling", 0}}, "logits_scaling");
}

TEST(Families, BidirectionalGemmasAreRefused) {
  for (const char* type : {"gemma", "gemma2", "gemma3_text"})
    expect_error<UnsupportedError>(type, {{"use_bidirectional_attention", true}}, "use_bidirectional_attention");
}

TEST(Alibi, SlopesWhereTheHeadsAreNoPowerOfTwo) {
  EXPECT_EQ(nn::alibi_slopes(4), (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625}));
  // Six heads: those of four, then the first and third of eight (Press et al.'s reference code).
  EXPECT_EQ(nn::alibi_slopes(6), (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}));
}

}  // namespace
}  // namespace hierarchos::models
