// Phi-3, Phi-3.5 and Phi-4-mini (transformers: models/phi3/modeling_phi3.py).
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {
namespace {

// "su" and "yarn" are what the first files called longrope.
nlohmann::json with_current_rope_type(const nlohmann::json& rope) {
  nlohmann::json current = rope;
  if (!rope.is_object()) return current;
  for (const char* key : {"rope_type", "type"})
    if (current.contains(key) && (current[key] == "su" || current[key] == "yarn")) current[key] = "longrope";
  return current;
}

nn::RopeParams read_phi3_rope(ConfigReader& config, const Description& d) {
  nlohmann::json settings = nlohmann::json::object();
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (const nlohmann::json* value = config.find(key)) settings[key] = with_current_rope_type(*value);
  for (const char* key : {"rope_theta", "partial_rotary_factor", "original_max_position_embeddings"})
    if (const nlohmann::json* value = config.find(key)) settings[key] = *value;
  ConfigReader reader(settings, config.where());
  nn::RopeParams rope = read_rope(reader, d.head_dim, d.max_positions, {.original_max_positions = 4096});
  if (rope.kind != nn::RopeKind::Default && rope.kind != nn::RopeKind::LongRope)
    config.unsupported("rope_parameters",
                       "has a rope_type other than default and longrope, which this family does not take");
  return rope;
}

}  // namespace

void describe_phi3(ConfigReader& config, Description& d) {
  read_sizes(config, d, {.vocab = 32064, .hidden = 3072, .intermediate = 8192, .max_positions = 4096});
  read_head_dim(config, d);
  read_rms_norm(config, d, 1e-5);
  d.rope = read_phi3_rope(config, d);
  if (d.rope.kind == nn::RopeKind::LongRope) d.recompute_past = d.rope.original_max_positions;
  set_attention_scale(d);
  read_window(config, d, std::nullopt);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d, 32000);

  set_llama_names(d);
  d.lora_targets = {"qkv_proj"};
  d.names.q = d.names.k = d.names.v = d.names.gate = d.names.up = "";
  d.names.qkv = "self_attn.qkv_proj";
  d.names.gate_up = "mlp.gate_up_proj";
}

}  // namespace hierarchos::models
