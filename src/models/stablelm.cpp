// StableLM 3B, 2 1.6B and 2 12B (transformers: models/stablelm/modeling_stablelm.py).
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {

void describe_stablelm(ConfigReader& config, Description& d) {
  read_sizes(config, d, {.vocab = 50304, .hidden = 2560, .intermediate = 6912, .kv_heads = 32, .max_positions = 4096});
  expect_even_split(config, d);
  d.head_dim = d.hidden_size / d.heads;
  config.only("head_dim", d.head_dim, "it follows from the other sizes");
  read_layer_norm(config, d, "layer_norm_eps");
  d.rope = read_rope(config, d.head_dim, d.max_positions, {.partial = 0.25});
  if (d.rope.dim % 2 != 0)
    config.unsupported("partial_rotary_factor", fmt::format("gives {} rotated channels, an odd number", d.rope.dim));
  set_attention_scale(d);
  d.qkv_bias = config.flag("use_qkv_bias", false);
  d.parallel_residual = config.flag("use_parallel_residual", false);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d);

  set_llama_names(d);
  if (d.parallel_residual) d.names.mlp_norm = "";  // both blocks read the one norm
  if (config.flag("qk_layernorm", false)) {
    d.qk_norm = QkNorm::PerHead;
    d.qk_norm_spec = d.norm;
    d.qk_norm_spec.bias = false;
    d.names.q_norm = "self_attn.q_layernorm.norms.{}";
    d.names.k_norm = "self_attn.k_layernorm.norms.{}";
  }
}

}  // namespace hierarchos::models
