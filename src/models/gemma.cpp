// Gemma 1, 2 and 3 (transformers: models/gemma, models/gemma2, models/gemma3; of the last the text model).
#include <cmath>

#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {
namespace {

void describe_common(ConfigReader& config, Description& d) {
  read_rms_norm(config, d, 1e-6);
  d.norm.weight_offset = 1;
  // The reference keeps the factor in fp32.
  d.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(d.hidden_size)));
  d.qkv_bias = d.o_bias = config.flag("attention_bias", false);
  d.tied_head = config.flag("tie_word_embeddings", true);
  read_padding(config, d, 0);
  config.only("use_bidirectional_attention", false,
              "models that see later tokens are encoders, which generate nothing");
}

// The part that the second and third generation share.
void describe_sandwich(ConfigReader& config, Description& d) {
  d.activation = config.text("hidden_activation", "gelu_pytorch_tanh");
  config.harmless({"hidden_act"});  // published files hold both; only the other is read
  const double scalar = config.number("query_pre_attn_scalar", 256);
  if (!(scalar > 0)) config.fail("query_pre_attn_scalar", fmt::format("must be positive, not {}", scalar));
  set_attention_scale(d, 1 / std::sqrt(scalar));
  expect_even_split(config, d);
  set_sandwich_names(d);
}

// `cap`: null for none, or above 0.
double cap(ConfigReader& config, std::string_view key, std::optional<double> fallback) {
  const std::optional<double> cap = fallback ? config.number_or_null(key, *fallback) : config.number({key});
  if (cap && !(*cap > 0)) config.fail(key, fmt::format("must be positive, not {}", *cap));
  return cap.value_or(0);
}

// Rotations of the layers with a window and of the others. Older files have rope_theta and rope_scaling for the latter,
// rope_local_base_freq for the former.
struct Gemma3Ropes {
  nn::RopeParams sliding, full;
};
Gemma3Ropes read_gemma3_ropes(ConfigReader& config, const Description& d) {
  nlohmann::json sliding = nlohmann::json::object(), full = sliding;
  if (const nlohmann::json* both = config.find("rope_parameters")) {
    ConfigReader entries(*both, config.where(), "rope_parameters.");
    for (auto [key, to] : {std::pair{"sliding_attention", &sliding}, {"full_attention", &full}})
      if (const nlohmann::json* entry = entries.find(key)) *to = *entry;
    entries.finish();
  }
  if (const nlohmann::json* scaling = config.find("rope_scaling")) {
    if (!scaling->is_object() || !full.is_object())
      config.fail("rope_scaling", fmt::format("must be an object, not {}", scaling->dump()));
    full.update(*scaling);
  }
  ConfigReader sliding_reader(sliding, config.where(), "rope_parameters.sliding_attention."),
      full_reader(full, config.where(), "rope_parameters.full_attention.");
  Gemma3Ropes ropes;
  ropes.sliding =
      read_rope_entry(sliding_reader, d.head_dim, d.max_positions, config.number("rope_local_base_freq", 1e4));
  ropes.full = read_rope_entry(full_reader, d.head_dim, d.max_positions, config.number("rope_theta", 1e6));
  for (const nn::RopeParams* rope : {&ropes.sliding, &ropes.full}) expect_whole_rotation(config, *rope, d.head_dim);
  return ropes;
}

}  // namespace

void describe_gemma(ConfigReader& config, Description& d) {
  read_sizes(config, d,
             {.vocab = 256000,
              .hidden = 3072,
              .intermediate = 24576,
              .layers = 28,
              .heads = 16,
              .kv_heads = 16,
              .max_positions = 8192});
  d.head_dim = config.size({"head_dim"}, 256);
  describe_common(config, d);
  // Published files say "gelu" and mean its tanh form.
  const auto meant = [](std::string name) { return name == "gelu" ? "gelu_pytorch_tanh" : name; };
  d.activation = meant(config.text("hidden_act", "gelu_pytorch_tanh"));
  if (meant(config.text("hidden_activation", d.activation)) != d.activation)
    config.unsupported("hidden_activation", "differs from hidden_act; keep one");
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  expect_whole_rotation(config, d.rope, d.head_dim);
  set_attention_scale(d);
  set_llama_names(d);
}

void describe_gemma2(ConfigReader& config, Description& d) {
  read_sizes(config, d,
             {.vocab = 256000,
              .hidden = 2304,
              .intermediate = 9216,
              .layers = 26,
              .heads = 8,
              .kv_heads = 4,
              .max_positions = 8192});
  d.head_dim = config.size({"head_dim"}, 256);
  describe_common(config, d);
  describe_sandwich(config, d);
  d.rope = read_rope(config, d.head_dim, d.max_positions);
  expect_whole_rotation(config, d.rope, d.head_dim);
  d.attention_softcap = cap(config, "attn_logit_softcapping", 50);
  d.logit_softcap = cap(config, "final_logit_softcapping", 30);
  const std::optional<int64_t> window = config.integer_or_null("sliding_window", 4096);
  config.only("sliding_window_size", window.value_or(0), "it is an older spelling of sliding_window");
  const auto every_second = [](int64_t layer, int64_t) { return layer % 2 == 0; };
  set_windows(config, d, read_sliding_layers(config, d, every_second, 0), window);
}

void describe_gemma3_text(ConfigReader& config, Description& d) {
  read_sizes(config, d,
             {.vocab = 262208,
              .hidden = 2304,
              .intermediate = 9216,
              .layers = 26,
              .heads = 8,
              .kv_heads = 4,
              .max_positions = 131072});
  d.head_dim = config.size({"head_dim"}, 256);
  describe_common(config, d);
  describe_sandwich(config, d);
  config.harmless({"attn_logit_softcapping"});  // the reference does not cap scores, whatever it says
  d.logit_softcap = cap(config, "final_logit_softcapping", std::nullopt);
  d.qk_norm = QkNorm::Head;
  d.qk_norm_spec = d.norm;
  d.names.q_norm = "self_attn.q_norm";
  d.names.k_norm = "self_attn.k_norm";

  const int64_t pattern = config.size({"sliding_window_pattern"}, 6);
  config.harmless({"_sliding_window_pattern"});  // a note of what layer_types was made from
  const auto all_but_each = [](int64_t layer, int64_t parameter) { return (layer + 1) % parameter != 0; };
  const std::vector<bool> sliding = read_sliding_layers(config, d, all_but_each, pattern);
  set_windows(config, d, sliding, config.integer_or_null("sliding_window", 4096));
  const Gemma3Ropes ropes = read_gemma3_ropes(config, d);
  d.rope = ropes.full;
  for (bool s : sliding) d.layer_ropes.push_back(s ? ropes.sliding : ropes.full);
}

}  // namespace hierarchos::models
