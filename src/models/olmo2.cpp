// OLMo 2 (transformers: models/olmo2/modeling_olmo2.py): norms after the blocks, and over the whole of q and k.
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {

void describe_olmo2(ConfigReader& config, Description& d) {
  read_sizes(config, d, {.vocab = 50304});
  read_head_dim(config, d);
  read_rms_norm(config, d, 1e-5);
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  expect_whole_rotation(config, d.rope, d.head_dim);
  set_attention_scale(d);
  d.qk_norm = QkNorm::Whole;
  d.qk_norm_spec = d.norm;
  d.qkv_bias = d.o_bias = config.flag("attention_bias", false);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d, 1);

  set_llama_names(d);
  d.names.q_norm = "self_attn.q_norm";
  d.names.k_norm = "self_attn.k_norm";
  d.names.attention_norm = d.names.mlp_norm = "";
  d.names.post_attention_norm = "post_attention_layernorm";
  d.names.post_mlp_norm = "post_feedforward_layernorm";
}

}  // namespace hierarchos::models
