#include "models/llama_like.h"

#include <algorithm>
#include <cmath>

namespace hierarchos::models {

void read_sizes(ConfigReader& config, Description& d, const SizeDefaults& defaults) {
  d.vocab_size = config.size({"vocab_size"}, defaults.vocab);
  d.hidden_size = config.size({"hidden_size"}, defaults.hidden);
  d.intermediate_size = config.size({"intermediate_size"}, defaults.intermediate);
  d.layers = config.size({"num_hidden_layers"}, defaults.layers, kMostLayers);
  d.heads = config.size({"num_attention_heads"}, defaults.heads);
  const auto kv = config.integer_or_null("num_key_value_heads", defaults.kv_heads.value_or(d.heads));
  d.kv_heads = kv.value_or(d.heads);
  if (d.kv_heads < 1) config.fail("num_key_value_heads", fmt::format("must be at least 1, not {}", d.kv_heads));
  d.max_positions = config.size({"max_position_embeddings"}, defaults.max_positions);
}

void read_head_dim(ConfigReader& config, Description& d) {
  d.head_dim = config.size({"head_dim"}, std::max<int64_t>(d.hidden_size / d.heads, 1));
}

void expect_even_split(const ConfigReader& config, const Description& d) {
  if (d.hidden_size % d.heads != 0)
    config.fail("hidden_size",
                fmt::format("({}) must be a multiple of num_attention_heads ({})", d.hidden_size, d.heads));
}

void read_padding(ConfigReader& config, Description& d, std::optional<int64_t> fallback) {
  std::optional<int64_t> pad =
      fallback ? config.integer_or_null("pad_token_id", *fallback) : config.integer({"pad_token_id"});
  if (!pad) return;
  d.padding_idx = *pad < 0 ? *pad + d.vocab_size : *pad;  // torch counts a negative index from the end
  if (d.padding_idx < 0 || d.padding_idx >= d.vocab_size)
    config.fail("pad_token_id", fmt::format("({}) is outside the vocabulary of {}", *pad, d.vocab_size));
}

void set_attention_scale(Description& d, std::optional<double> scale) {
  d.attention_scale.assign(static_cast<size_t>(d.layers),
                           scale.value_or(1.0 / std::sqrt(static_cast<double>(d.head_dim))));
}

void read_rms_norm(ConfigReader& config, Description& d, double default_eps) {
  d.norm.kind = nn::NormKind::Rms;
  d.norm.eps = config.number("rms_norm_eps", default_eps);
}

void read_layer_norm(ConfigReader& config, Description& d, std::string_view eps_key) {
  d.norm.kind = nn::NormKind::Layer;
  d.norm.eps = config.number(eps_key, 1e-5);
  d.norm.bias = true;
}

std::vector<bool> read_sliding_layers(ConfigReader& config, const Description& d,
                                      bool (*is_sliding)(int64_t layer, int64_t parameter), int64_t parameter) {
  std::vector<bool> sliding;
  const nlohmann::json* types = config.find("layer_types");
  if (!types) {
    for (int64_t i = 0; i < d.layers; ++i) sliding.push_back(is_sliding(i, parameter));
    return sliding;
  }
  if (!types->is_array() || static_cast<int64_t>(types->size()) != d.layers)
    config.fail("layer_types", fmt::format("must name the type of each of the {} layers", d.layers));
  for (const nlohmann::json& type : *types) {
    if (type != "sliding_attention" && type != "full_attention")
      config.unsupported("layer_types",
                         fmt::format("holds {}; this family has sliding_attention and full_attention", type.dump()));
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

void set_windows(const ConfigReader& config, Description& d, const std::vector<bool>& sliding,
                 std::optional<int64_t> window) {
  if (std::none_of(sliding.begin(), sliding.end(), [](bool s) { return s; })) return;
  if (!window) config.fail("sliding_window", "is missing, but some layers are of type sliding_attention");
  if (*window < 1) config.fail("sliding_window", fmt::format("must be at least 1, not {}", *window));
  for (bool s : sliding) d.windows.push_back(s ? *window : 0);
}

void read_window(ConfigReader& config, Description& d, std::optional<int64_t> fallback) {
  const std::optional<int64_t> window =
      fallback ? config.integer_or_null("sliding_window", *fallback) : config.integer({"sliding_window"});
  if (window) set_windows(config, d, std::vector<bool>(static_cast<size_t>(d.layers), true), window);
}

void read_switched_windows(ConfigReader& config, Description& d) {
  std::optional<int64_t> window = config.integer_or_null("sliding_window", 4096);
  const bool on = config.flag("use_sliding_window", false);
  if (!on) window.reset();
  const int64_t first = config.integer("max_window_layers", 28);
  const auto from = [](int64_t layer, int64_t parameter) { return layer >= parameter; };
  const std::vector<bool> sliding = read_sliding_layers(config, d, from, window ? first : d.layers);
  if (!on && std::find(sliding.begin(), sliding.end(), true) != sliding.end())
    config.fail("use_sliding_window", "is off, but layer_types has layers of type sliding_attention");
  set_windows(config, d, sliding, window);
}

void set_llama_names(Description& d) {
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

void set_sandwich_names(Description& d) {
  set_llama_names(d);
  d.names.post_attention_norm = "post_attention_layernorm";
  d.names.mlp_norm = "pre_feedforward_layernorm";
  d.names.post_mlp_norm = "post_feedforward_layernorm";
}

}  // namespace hierarchos::models
