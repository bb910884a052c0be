// GPT-NeoX, Pythia and their kin (transformers: models/gpt_neox/modeling_gpt_neox.py).
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {

void describe_gpt_neox(ConfigReader& config, Description& d) {
  d.vocab_size = config.size({"vocab_size"}, 50432);
  d.hidden_size = config.size({"hidden_size"}, 6144);
  d.layers = config.size({"num_hidden_layers"}, 44, kMostLayers);
  d.heads = d.kv_heads = config.size({"num_attention_heads"}, 64);
  d.intermediate_size = config.size({"intermediate_size"}, 24576);
  d.max_positions = config.size({"max_position_embeddings"}, 2048);
  expect_even_split(config, d);
  d.head_dim = d.hidden_size / d.heads;
  config.only("head_dim", d.head_dim, "it follows from the other sizes");

  read_layer_norm(config, d, "layer_norm_eps");
  const RopeDefaults rope{.partial = 0.25, .theta_key = "rotary_emb_base", .partial_key = "rotary_pct"};
  d.rope = read_rope(config, d.head_dim, d.max_positions, rope);
  // Files of transformers 4 repeat both settings under these names.
  config.only("rope_theta", d.rope.theta, "this family's spelling of it is rotary_emb_base");
  config.only("partial_rotary_factor", config.number("rotary_pct", rope.partial),
              "this family's spelling of it is rotary_pct");
  set_attention_scale(d);
  d.qkv_layout = nn::QkvLayout::Groups;
  d.qkv_bias = d.o_bias = config.flag("attention_bias", true);
  d.mlp_bias = true;
  d.parallel_residual = config.flag("use_parallel_residual", true);
  d.activation = config.text("hidden_act", "gelu");
  d.tied_head = config.flag("tie_word_embeddings", false);

  d.lora_targets = {"query_key_value"};
  d.names.prefix = "gpt_neox.";
  d.names.embedding = "embed_in";
  d.names.final_norm = "final_layer_norm";
  d.names.head = "embed_out";
  d.names.aliases = {{"lm_head", "embed_out"}};
  d.names.layer = "layers.{}";
  d.names.attention_norm = "input_layernorm";
  d.names.qkv = "attention.query_key_value";
  d.names.o = "attention.dense";
  d.names.mlp_norm = "post_attention_layernorm";
  d.names.up = "mlp.dense_h_to_4h";
  d.names.down = "mlp.dense_4h_to_h";
  // Causal masks and tables that older files hold.
  d.unused_tensors = {"*.attention.bias", "*.attention.masked_bias", "*rotary_emb.inv_freq"};
}

}  // namespace hierarchos::models
