// Qwen 3 (transformers: models/qwen3/modeling_qwen3.py).
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {

void describe_qwen3(ConfigReader& config, Description& d) {
  read_sizes(config, d, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .max_positions = 32768});
  d.head_dim = config.size({"head_dim"}, 128);
  read_rms_norm(config, d, 1e-6);
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  expect_whole_rotation(config, d.rope, d.head_dim);
  set_attention_scale(d);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d);
  read_switched_windows(config, d);
  set_llama_names(d);
  d.qkv_bias = d.o_bias = config.flag("attention_bias", false);
  d.qk_norm = QkNorm::Head;
  d.qk_norm_spec = d.norm;
  d.names.q_norm = "self_attn.q_norm";
  d.names.k_norm = "self_attn.k_norm";
}

}  // namespace hierarchos::models
