// GPT-2 and GPT-SW3, whose files say gpt2 (transformers: models/gpt2/modeling_gpt2.py).
#include <cmath>

#include "models/registry.h"

namespace hierarchos::models {

void describe_gpt2(ConfigReader& config, Description& d) {
  d.vocab_size = config.size({"vocab_size"}, 50257);
  d.hidden_size = config.size({"n_embd", "hidden_size"}, 768);
  d.layers = config.size({"n_layer", "num_hidden_layers"}, 12, kMostLayers);
  d.heads = d.kv_heads = config.size({"n_head", "num_attention_heads"}, 12);
  if (d.hidden_size % d.heads != 0)
    config.fail("n_embd", fmt::format("({}) must be a multiple of n_head ({})", d.hidden_size, d.heads));
  d.head_dim = d.hidden_size / d.heads;
  d.intermediate_size = config.size({"n_inner"}, 4 * d.hidden_size);
  const std::optional<int64_t> context = config.integer({"n_ctx"});  // says the same in older files
  d.max_positions = config.size({"n_positions", "max_position_embeddings"}, context.value_or(1024));

  d.norm.kind = nn::NormKind::Layer;
  d.norm.eps = config.number("layer_norm_epsilon", 1e-5);
  d.norm.bias = true;
  d.positions = Positions::Learned;
  const bool scaled = config.flag("scale_attn_weights", true);
  const bool by_layer = config.flag("scale_attn_by_inverse_layer_idx", false);
  for (int64_t i = 0; i < d.layers; ++i)
    d.attention_scale.push_back((scaled ? 1.0 / std::sqrt(static_cast<double>(d.head_dim)) : 1.0) /
                                (by_layer ? static_cast<double>(i + 1) : 1.0));
  // The same numbers in another order, in fp32; softmax and accumulation are fp32 here anyway.
  config.flag("reorder_and_upcast_attn", false);
  d.qkv_bias = d.o_bias = d.mlp_bias = true;
  d.transposed_linears = true;
  d.activation = config.text("activation_function", "gelu_new");
  d.tied_head = config.flag("tie_word_embeddings", true);

  d.lora_targets = {"c_attn"};
  d.names.prefix = "transformer.";
  d.names.embedding = "wte";
  d.names.positions = "wpe";
  d.names.final_norm = "ln_f";
  d.names.layer = "h.{}";
  d.names.attention_norm = "ln_1";
  d.names.qkv = "attn.c_attn";
  d.names.o = "attn.c_proj";
  d.names.mlp_norm = "ln_2";
  d.names.up = "mlp.c_fc";
  d.names.down = "mlp.c_proj";
  d.unused_tensors = {"*.attn.bias", "*.attn.masked_bias"};  // causal masks that older files hold
}

}  // namespace hierarchos::models
