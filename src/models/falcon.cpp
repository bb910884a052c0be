// Falcon 7B, 40B, 180B, 11B and the RefinedWeb models (transformers: models/falcon/modeling_falcon.py).
#include <cmath>

#include "models/llama_like.h"
#include "models/registry.h"
#include "nn/alibi.h"

namespace hierarchos::models {
namespace {

// Which norms there are, and whether the MLP reads what the attention reads.
void describe_blocks(ConfigReader& config, Description& d, bool grouped) {
  const bool parallel = config.flag("parallel_attn", true);
  const std::optional<int64_t> said = config.integer({"num_ln_in_parallel_attn"});
  const int64_t norms = said.value_or(grouped ? 2 : 1);
  d.parallel_residual = parallel;
  if (!parallel) {
    if (grouped)
      config.unsupported("parallel_attn", "is false with new_decoder_architecture, which the reference cannot compute");
    d.names.attention_norm = "input_layernorm";
    d.names.mlp_norm = "post_attention_layernorm";
  } else if (norms == 2) {
    if (!grouped)
      config.unsupported("num_ln_in_parallel_attn",
                         "is 2 without new_decoder_architecture, which the reference cannot compute");
    d.names.attention_norm = "ln_attn";
    d.names.mlp_norm = "ln_mlp";
  } else {
    if (grouped && norms != 1)
      config.unsupported("num_ln_in_parallel_attn", fmt::format("is {}; it may be 1 or 2", norms));
    d.names.attention_norm = "input_layernorm";
  }
}

}  // namespace

void describe_falcon(ConfigReader& config, Description& d) {
  d.vocab_size = config.size({"vocab_size"}, 65024);
  d.hidden_size = config.size({"hidden_size"}, 4544);
  if (config.has("n_embed")) d.hidden_size = config.size({"n_embed"});  // as the reference: the older key wins
  d.layers = config.size({"num_hidden_layers"}, 32, kMostLayers);
  d.heads = config.size({"num_attention_heads"}, 71);
  d.intermediate_size = config.size({"ffn_hidden_size"}, 4 * d.hidden_size);
  d.max_positions = config.size({"max_position_embeddings"}, 2048);
  expect_even_split(config, d);
  d.head_dim = d.hidden_size / d.heads;

  const bool grouped = config.flag("new_decoder_architecture", false), single = config.flag("multi_query", true);
  const int64_t said = config.size({"num_kv_heads"}, d.heads);
  d.kv_heads = grouped ? said : single ? 1 : d.heads;
  if (!grouped && !single && said != d.heads)
    config.unsupported("num_kv_heads",
                       fmt::format("is {} with multi_query false: then every head has a key of its own", said));
  d.qkv_layout = nn::QkvLayout::Groups;

  read_layer_norm(config, d, "layer_norm_epsilon");
  d.qkv_bias = d.o_bias = d.mlp_bias = config.flag("bias", false);
  d.activation = config.text("activation", "gelu");
  d.tied_head = config.flag("tie_word_embeddings", true);
  config.only("apply_residual_connection_post_layernorm", false, "the reference has no such residual");
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  set_attention_scale(d);
  if (config.flag("alibi", false)) {
    d.positions = Positions::Alibi;
    for (double slope : nn::alibi_slopes(d.heads)) d.alibi_slopes.push_back(slope * d.attention_scale[0]);
  } else {
    expect_whole_rotation(config, d.rope, d.head_dim);
  }

  d.lora_targets = {"query_key_value"};
  d.names.prefix = "transformer.";
  d.names.embedding = "word_embeddings";
  d.names.final_norm = "ln_f";
  d.names.layer = "h.{}";
  describe_blocks(config, d, grouped);
  d.names.qkv = "self_attention.query_key_value";
  d.names.o = "self_attention.dense";
  d.names.up = "mlp.dense_h_to_4h";
  d.names.down = "mlp.dense_4h_to_h";
  d.unused_tensors = {"*rotary_emb.inv_freq", "*rotary.inv_freq"};
}

}  // namespace hierarchos::models
