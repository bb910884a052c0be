// Configurations: every key counts, both spellings, and RoPE's numbers as transformers computes them in float64.
#include <gtest/gtest.h>

#include "models/registry.h"
#include "models/rope_config.h"

namespace hierarchos::models {
namespace {

using nlohmann::json;

json llama() {
  return {{"model_type", "llama"},   {"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 96},        {"hidden_size", 64},
          {"num_hidden_layers", 2},  {"num_attention_heads", 8},
          {"intermediate_size", 96}, {"max_position_embeddings", 4096},
          {"rms_norm_eps", 1e-5},    {"torch_dtype", "float32"},
          {"use_cache", true},       {"attention_dropout", 0.1},
          {"bos_token_id", 1},       {"initializer_range", 0.02}};
}

template <typename E>
void expect_error(const json& config, const std::string& part) {
  try {
    describe(config);
    FAIL() << "accepted, though it should name " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

std::vector<double> frequencies(const json& rope, int64_t length = 1) {
  json config = llama();
  config["rope_parameters"] = rope;
  return nn::rope_inverse_frequencies(describe(config).rope, length);
}

void expect_near(const std::vector<double>& ours, const std::vector<double>& truth) {
  ASSERT_EQ(ours.size(), truth.size());
  for (size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(ours[i] / truth[i], 1, 1e-13) << i;
}

TEST(Config, LlamaDefaultsFollowTransformers) {
  const Description d = describe({{"model_type", "llama"}});
  EXPECT_EQ(d.vocab_size, 32000);
  EXPECT_EQ(d.intermediate_size, 11008);
  EXPECT_EQ(d.kv_heads, 32);
  EXPECT_EQ(d.head_dim, 128);
  EXPECT_EQ(d.norm.eps, 1e-6);
  EXPECT_EQ(d.padding_idx, -1);
}

TEST(Config, UnknownKeysAreRefusedByName) {
  json config = llama();
  config["query_pre_attn_scalar"] = 256;
  expect_error<UnsupportedError>(config, "query_pre_attn_scalar");
  config["query_pre_attn_scalar"] = nullptr;  // says nothing
  describe(config);
  config["quantization_config"] = {{"bits", 4}};
  expect_error<UnsupportedError>(config, "quantization_config");
}

TEST(Config, ValuesThatAreNotHonouredAreRefused) {
  for (auto [key, value] : std::map<std::string, json>{{"layer_types", json::array({"sliding_attention"})},
                                                       {"is_encoder_decoder", true},
                                                       {"model_type", "mamba"},
                                                       {"architectures", {"LlamaForSequenceClassification"}},
                                                       {"partial_rotary_factor", 0.5}}) {
    json config = llama();
    config[key] = value;
    expect_error<UnsupportedError>(config, key);
  }
  for (auto [key, value] : std::map<std::string, json>{{"hidden_size", "64"},
                                                       {"num_hidden_layers", 0},
                                                       {"num_key_value_heads", 3},
                                                       {"pad_token_id", 96},
                                                       {"rope_scaling", 3},
                                                       {"attention_bias", 1}}) {
    json config = llama();
    config[key] = value;
    expect_error<DataError>(config, key);
  }
}

TEST(Config, PaddingCountsFromTheEndWhenNegative) {
  json config = llama();
  config["pad_token_id"] = -1;
  EXPECT_EQ(describe(config).padding_idx, 95);
}

TEST(Config, BothSpellingsOfRope) {
  json old = llama();
  old["rope_theta"] = 500000.0;
  old["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  json current = llama();
  current["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500000.0}};
  EXPECT_EQ(nn::rope_inverse_frequencies(describe(old).rope, 1),
            nn::rope_inverse_frequencies(describe(current).rope, 1));
  old["rope_scaling"] = {{"type", "su"}, {"factor", 4.0}};
  expect_error<UnsupportedError>(old, "su");
  old["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}, {"low_frequencies", 1}};
  expect_error<UnsupportedError>(old, "rope_scaling.low_frequencies");
  old["rope_scaling"] = {{"type", "linear"}};
  expect_error<DataError>(old, "rope_scaling.factor");
}

TEST(Config, RopeScalingsAsTheReference) {
  expect_near(frequencies({{"rope_type", "linear"}, {"factor", 4.0}}), {0.25, 0.025, 0.0025, 0.00025});
  expect_near(frequencies({{"rope_type", "dynamic"}, {"factor", 2.0}}, 6000),
              {1.0, 0.0803225841347784, 0.00645171752208855, 0.000518218623481781});
  expect_near(frequencies({{"rope_type", "dynamic"}, {"factor", 2.0}}, 4096), {1.0, 0.1, 0.01, 0.001});
  expect_near(frequencies({{"rope_type", "yarn"},
                           {"rope_theta", 500000.0},
                           {"factor", 8.0},
                           {"original_max_position_embeddings", 512}}),
              {1.0, 0.021153392398611, 0.000176776695296637, 6.64786987118124e-06});
  expect_near(frequencies({{"rope_type", "yarn"},
                           {"factor", 40.0},
                           {"original_max_position_embeddings", 4096},
                           {"mscale", 1.0},
                           {"mscale_all_dim", 0.8},
                           {"beta_fast", 16},
                           {"beta_slow", 2},
                           {"truncate", false}}),
              {1.0, 0.1, 0.00579010496244711, 2.5e-05});
  expect_near(frequencies({{"rope_type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 1.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 128}}),
              {1.0, 0.0427511787543076, 0.00125, 0.000125});
  const json longrope = {{"rope_type", "longrope"},
                         {"original_max_position_embeddings", 1024},
                         {"short_factor", {1.0, 1.1, 1.2, 1.3}},
                         {"long_factor", {1.0, 2.0, 4.0, 8.0}}};
  expect_near(frequencies(longrope, 1024), {1.0, 0.0909090909090909, 0.00833333333333333, 0.000769230769230769});
  expect_near(frequencies(longrope, 1025), {1.0, 0.05, 0.0025, 0.000125});
}

TEST(Config, RopeAttentionFactors) {
  auto factor = [](const json& rope) {
    json config = llama();
    config["rope_parameters"] = rope;
    return describe(config).rope.attention_factor;
  };
  EXPECT_DOUBLE_EQ(factor({{"rope_type", "yarn"}, {"factor", 8.0}}), 1.2079441541679836);
  // mscale alone does nothing.
  EXPECT_DOUBLE_EQ(factor({{"rope_type", "yarn"}, {"factor", 8.0}, {"mscale", 0.5}}), 1.2079441541679836);
  EXPECT_DOUBLE_EQ(factor({{"rope_type", "yarn"}, {"factor", 40.0}, {"mscale", 1.0}, {"mscale_all_dim", 0.8}}),
                   1.0569662567531275);
  EXPECT_DOUBLE_EQ(factor({{"rope_type", "yarn"}, {"factor", 8.0}, {"attention_factor", 0.7}}), 0.7);
  EXPECT_DOUBLE_EQ(factor({{"rope_type", "longrope"},
                           {"original_max_position_embeddings", 1024},
                           {"short_factor", {1, 1, 1, 1}},
                           {"long_factor", {1, 1, 1, 1}}}),
                   1.0954451150103321);
}

TEST(Config, Gpt2Spellings) {
  json config = {{"model_type", "gpt2"},
                 {"n_embd", 64},
                 {"n_head", 4},
                 {"n_layer", 2},
                 {"n_ctx", 32},
                 {"vocab_size", 96},
                 {"resid_pdrop", 0.1},
                 {"summary_type", "cls_index"},
                 {"scale_attn_by_inverse_layer_idx", true}};
  Description d = describe(config);
  EXPECT_EQ(d.max_positions, 32);
  EXPECT_EQ(d.intermediate_size, 256);
  EXPECT_TRUE(d.tied_head);
  EXPECT_DOUBLE_EQ(d.attention_scale[1], 0.125);
  config["n_positions"] = 48;
  EXPECT_EQ(describe(config).max_positions, 48);
  config["hidden_size"] = 32;  // contradicts n_embd
  expect_error<DataError>(config, "hidden_size");
  config.erase("hidden_size");
  config["add_cross_attention"] = true;
  expect_error<UnsupportedError>(config, "add_cross_attention");
}

TEST(Config, KeysThatLookHarmless) {
  for (const char* key : {"output_multiplier", "output_scale", "foo_dropout", "return_dicts"})
    EXPECT_THROW(describe({{"model_type", "llama"}, {key, 2.0}}), UnsupportedError) << key;
  EXPECT_NO_THROW(describe({{"model_type", "llama"}, {"output_attentions", false}, {"attention_dropout", 0.1}}));
}

TEST(Config, ClassesOfOtherHeads) {
  for (const nlohmann::json& bad :
       {nlohmann::json("LlamaForSequenceClassification"), nlohmann::json("LlamaForRewardModel"),
        nlohmann::json::array({"LlamaForCausalLM", "LlamaForTokenClassification"})})
    EXPECT_THROW(describe({{"model_type", "llama"}, {"architectures", bad}}), UnsupportedError) << bad;
  EXPECT_THROW(describe({{"model_type", "llama"}, {"architectures", 1}}), DataError);
  for (const char* good : {"LlamaForCausalLM", "LlamaModel", "GPT2LMHeadModel"})
    EXPECT_NO_THROW(describe({{"model_type", "llama"}, {"architectures", {good}}})) << good;
}

TEST(Config, LayersAreCountedBeforeTheyAreMade) {
  EXPECT_THROW(describe({{"model_type", "llama"}, {"num_hidden_layers", 2147483647}}), DataError);
}

}  // namespace
}  // namespace hierarchos::models
