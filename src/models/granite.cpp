// Granite 3 (transformers: models/granite/modeling_granite.py): a Llama with four factors.
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {

void describe_granite(ConfigReader& config, Description& d) {
  read_sizes(config, d, {});
  read_head_dim(config, d);
  read_rms_norm(config, d, 1e-6);
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  expect_whole_rotation(config, d.rope, d.head_dim);
  set_attention_scale(d, config.number("attention_multiplier", 1));
  d.embedding_scale = config.number("embedding_multiplier", 1);
  d.residual_scale = config.number("residual_multiplier", 1);
  const double divisor = config.number("logits_scaling", 1);
  if (divisor == 0) config.fail("logits_scaling", "divides the logits and must not be 0");
  d.logit_scale = 1 / divisor;
  d.qkv_bias = d.o_bias = config.flag("attention_bias", false);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d);
  set_llama_names(d);
}

}  // namespace hierarchos::models
