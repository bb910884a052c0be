// Qwen 1.5, 2 and 2.5 (transformers: models/qwen2/modeling_qwen2.py).
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {

void describe_qwen2(ConfigReader& config, Description& d) {
  read_sizes(config, d, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .max_positions = 32768});
  read_head_dim(config, d);
  read_rms_norm(config, d, 1e-6);
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  expect_whole_rotation(config, d.rope, d.head_dim);
  // Files of Qwen 2.5 have it.
  config.only("use_mrope", false, "only positions of text are implemented");
  set_attention_scale(d);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d);
  read_switched_windows(config, d);
  set_llama_names(d);
  d.qkv_bias = true;
}

}  // namespace hierarchos::models
