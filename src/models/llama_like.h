// What the many families share that came from Llama's way of writing a configuration and naming tensors.
#pragma once

#include "models/config_reader.h"
#include "models/description.h"
#include "models/rope_config.h"

namespace hierarchos::models {

// Defaults of a family's configuration class.
struct SizeDefaults {
  int64_t vocab = 32000, hidden = 4096, intermediate = 11008, layers = 32, heads = 32;
  std::optional<int64_t> kv_heads;  // none: as many as heads
  int64_t max_positions = 2048;
};
// vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, num_key_value_heads (null: as
// many as heads), max_position_embeddings.
void read_sizes(ConfigReader& config, Description& d, const SizeDefaults& defaults);
// head_dim, or what an even split of hidden_size gives.
void read_head_dim(ConfigReader& config, Description& d);
// For families whose reference insists on an even split.
void expect_even_split(const ConfigReader& config, const Description& d);
// pad_token_id as the row of the embedding that gets no gradient from look-ups.
void read_padding(ConfigReader& config, Description& d, std::optional<int64_t> fallback = std::nullopt);
// Scores times this in every layer; 1/√head_dim where it is not given.
void set_attention_scale(Description& d, std::optional<double> scale = std::nullopt);
// RMS norms with their weight.
void read_rms_norm(ConfigReader& config, Description& d, double default_eps);
// Layer norms with weight and bias.
void read_layer_norm(ConfigReader& config, Description& d, std::string_view eps_key);

// layer_types, or where it is absent what `is_sliding` says of each layer: whether the layer has the window.
std::vector<bool> read_sliding_layers(ConfigReader& config, const Description& d,
                                      bool (*is_sliding)(int64_t layer, int64_t parameter), int64_t parameter);
// Gives the window to those layers; an error where there is none to give.
void set_windows(const ConfigReader& config, Description& d, const std::vector<bool>& sliding,
                 std::optional<int64_t> window);
// sliding_window for every layer, null for none.
void read_window(ConfigReader& config, Description& d, std::optional<int64_t> fallback);

// Qwen's way: sliding_window counts where use_sliding_window is on, for the layers from max_window_layers on or as
// layer_types says.
void read_switched_windows(ConfigReader& config, Description& d);

// "model.layers.N.self_attn.q_proj" and so on, norms before both blocks, and PEFT's default targets.
void set_llama_names(Description& d);
// Norms before and after both blocks.
void set_sandwich_names(Description& d);

}  // namespace hierarchos::models
