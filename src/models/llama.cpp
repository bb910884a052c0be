// Llama 1 to 3 and the many models published as such (transformers: models/llama/modeling_llama.py).
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {

void describe_llama(ConfigReader& config, Description& d) {
  read_sizes(config, d, {});
  expect_even_split(config, d);
  read_head_dim(config, d);
  read_rms_norm(config, d, 1e-6);
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  expect_whole_rotation(config, d.rope, d.head_dim);
  set_attention_scale(d);
  d.qkv_bias = d.o_bias = config.flag("attention_bias", false);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d);
  config.harmless({"pretraining_tp"});  // how the products were cut over devices
  if (const nlohmann::json* types = config.find("layer_types"))
    for (const nlohmann::json& type : *types)
      if (type != "full_attention")
        config.unsupported("layer_types",
                           fmt::format("has {}; every layer of a Llama attends to all tokens", type.dump()));
  config.only("rope_interleaved", false, "this family rotates the halves of a head against each other");
  config.harmless({"is_llama_config"});
  set_llama_names(d);
}

}  // namespace hierarchos::models
