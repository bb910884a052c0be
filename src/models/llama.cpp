// Llama 1 to 3 and the many models published as such (transformers: models/llama/modeling_llama.py).
#include <cmath>

#include "models/registry.h"
#include "models/rope_config.h"

namespace hierarchos::models {

void describe_llama(ConfigReader& config, Description& d) {
  d.vocab_size = config.size({"vocab_size"}, 32000);
  d.hidden_size = config.size({"hidden_size"}, 4096);
  d.layers = config.size({"num_hidden_layers"}, 32, kMostLayers);
  d.intermediate_size = config.size({"intermediate_size"}, 11008);
  d.heads = config.size({"num_attention_heads"}, 32);
  d.kv_heads = config.size({"num_key_value_heads"}, d.heads);
  if (d.hidden_size % d.heads != 0)
    config.fail("hidden_size",
                fmt::format("({}) must be a multiple of num_attention_heads ({})", d.hidden_size, d.heads));
  d.head_dim = config.size({"head_dim"}, d.hidden_size / d.heads);
  d.max_positions = config.size({"max_position_embeddings"}, 2048);

  d.norm.kind = nn::NormKind::Rms;
  d.norm.eps = config.number("rms_norm_eps", 1e-6);
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  // The reference's default rotation ignores the factor, its scaled ones fail with it.
  if (d.rope.dim != d.head_dim) config.unsupported("partial_rotary_factor", "is below 1; a Llama rotates whole heads");
  d.attention_scale.assign(static_cast<size_t>(d.layers), 1.0 / std::sqrt(static_cast<double>(d.head_dim)));
  d.qkv_bias = d.o_bias = config.flag("attention_bias", false);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  if (auto pad = config.integer({"pad_token_id"})) {  // torch counts a negative index from the end
    d.padding_idx = *pad < 0 ? *pad + d.vocab_size : *pad;
    if (d.padding_idx < 0 || d.padding_idx >= d.vocab_size)
      config.fail("pad_token_id", fmt::format("({}) is outside the vocabulary of {}", *pad, d.vocab_size));
  }
  config.only("pretraining_tp", 1, "the weights do not depend on it, so set it to 1");
  config.only("rope_interleaved", false, "this family rotates the halves of a head against each other");
  config.harmless({"is_llama_config"});

  d.lora_targets = {"q_proj", "v_proj"};
  d.names.prefix = "model.";
  d.names.embedding = "embed_tokens";
  d.names.final_norm = "norm";
  d.names.layer = "layers.{}";
  d.names.attention_norm = "input_layernorm";
  d.names.q = "self_attn.q_proj";
  d.names.k = "self_attn.k_proj";
  d.names.v = "self_attn.v_proj";
  d.names.o = "self_attn.o_proj";
  d.names.mlp_norm = "post_attention_layernorm";
  d.names.gate = "mlp.gate_proj";
  d.names.up = "mlp.up_proj";
  d.names.down = "mlp.down_proj";
  d.unused_tensors = {"*rotary_emb.inv_freq"};  // a table that older files hold; computed here
}

}  // namespace hierarchos::models
