#include "formats/gguf_architectures.h"

#include <array>
#include <cmath>

namespace hierarchos::formats {
namespace {

using Change = GgufTensor::Change;
using Json = nlohmann::json;

constexpr const char* kSecondNorm = "blk.0.attn_norm_2.weight";

void set_type(Json& config, const char* model_type, const char* model_class) {
  config["model_type"] = model_type;
  config["architectures"] = {model_class};
}

// Families that came from Llama: RMSNorm, rotation of whole heads, a gated MLP.
void llama_like(const GgufKeys& keys, Json& config, const char* model_type, const char* model_class) {
  set_type(config, model_type, model_class);
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = keys.number("attention.layer_norm_rms_epsilon");
  if (keys.head_dim * keys.heads != keys.hidden || keys.has("attention.key_length")) config["head_dim"] = keys.head_dim;
  keys.expect("rope.dimension_count", keys.head_dim);
  add_rope_scaling(keys, config);
}

void llama(const GgufKeys& keys, Json& config) {
  const int64_t experts = keys.integer("expert_count", 0);
  if (experts == 0) {
    llama_like(keys, config, "llama", "LlamaForCausalLM");
    config["head_dim"] = keys.head_dim;
    config["attention_bias"] = keys.has_tensor("blk.0.attn_q.bias");
    config["mlp_bias"] = keys.has_tensor("blk.0.ffn_gate.bias");
    keys.expect("expert_used_count", 0);
    return;
  }
  if (experts < 0 || experts > kMostParts) throw DataError("{}: expert_count is {}", keys.file().where(), experts);
  llama_like(keys, config, "mixtral", "MixtralForCausalLM");
  config["num_local_experts"] = experts;
  config["num_experts_per_tok"] = keys.integer("expert_used_count");
  config["sliding_window"] = nullptr;
}

void qwen2(const GgufKeys& keys, Json& config) {
  llama_like(keys, config, "qwen2", "Qwen2ForCausalLM");
  config["use_sliding_window"] = false;
}

void qwen3(const GgufKeys& keys, Json& config) {
  llama_like(keys, config, "qwen3", "Qwen3ForCausalLM");
  config["head_dim"] = keys.head_dim;
  config["attention_bias"] = keys.has_tensor("blk.0.attn_q.bias");
  config["use_sliding_window"] = false;
}

void gemma_like(const GgufKeys& keys, Json& config, const char* model_type, const char* model_class) {
  llama_like(keys, config, model_type, model_class);
  config["head_dim"] = keys.head_dim;
  config["hidden_act"] = config["hidden_activation"] = "gelu_pytorch_tanh";
}

void gemma(const GgufKeys& keys, Json& config) { gemma_like(keys, config, "gemma", "GemmaForCausalLM"); }

// The scale of the scores is not in the metadata: it goes by the head, except in the 27B models, known by their layers.
void add_query_scale(const GgufKeys& keys, Json& config, int64_t layers_of_27b) {
  config["query_pre_attn_scalar"] = keys.layers == layers_of_27b ? keys.hidden / keys.heads : keys.head_dim;
}

void add_layer_types(const GgufKeys& keys, Json& config, int64_t period) {
  Json types = Json::array();
  for (int64_t i = 0; i < keys.layers; ++i)
    types.push_back(period > 0 && (i + 1) % period != 0 ? "sliding_attention" : "full_attention");
  config["layer_types"] = std::move(types);
}

void gemma2(const GgufKeys& keys, Json& config) {
  gemma_like(keys, config, "gemma2", "Gemma2ForCausalLM");
  const auto cap = [&](const char* key) { return keys.has(key) ? Json(keys.number(key)) : Json(nullptr); };
  config["attn_logit_softcapping"] = cap("attn_logit_softcapping");
  config["final_logit_softcapping"] = cap("final_logit_softcapping");
  config["sliding_window"] = keys.integer("attention.sliding_window", 4096);
  add_query_scale(keys, config, 46);
  add_layer_types(keys, config, 2);
}

void gemma3(const GgufKeys& keys, Json& config) {
  gemma_like(keys, config, "gemma3_text", "Gemma3ForCausalLM");
  const int64_t window = keys.integer("attention.sliding_window", 0);
  if (window > 0) config["sliding_window"] = window;
  add_query_scale(keys, config, 62);
  add_layer_types(keys, config, window > 0 ? 6 : 0);
  config["rope_local_base_freq"] = keys.number("rope.freq_base_swa", 10000);
  config["attn_logit_softcapping"] = nullptr;
  config["final_logit_softcapping"] = nullptr;
  if (keys.has("final_logit_softcapping")) config["final_logit_softcapping"] = keys.number("final_logit_softcapping");
}

void add_partial_rotation(const GgufKeys& keys, Json& config) {
  config["partial_rotary_factor"] = static_cast<double>(keys.rotated) / static_cast<double>(keys.head_dim);
}

void phi3(const GgufKeys& keys, Json& config) {
  set_type(config, "phi3", "Phi3ForCausalLM");
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = keys.number("attention.layer_norm_rms_epsilon");
  const int64_t window = keys.integer("attention.sliding_window", 0);
  config["sliding_window"] = window > 0 ? Json(window) : Json(nullptr);
  add_partial_rotation(keys, config);
  add_rope_scaling(keys, config);
}

void gptneox(const GgufKeys& keys, Json& config) {
  set_type(config, "gpt_neox", "GPTNeoXForCausalLM");
  config["hidden_act"] = "gelu";
  config["layer_norm_eps"] = keys.number("attention.layer_norm_epsilon");
  config["use_parallel_residual"] = keys.flag("use_parallel_residual", true);
  config["attention_bias"] = keys.has_tensor("blk.0.attn_qkv.bias");
  config["rotary_pct"] = static_cast<double>(keys.rotated) / static_cast<double>(keys.head_dim);
  config["rotary_emb_base"] = keys.rope_theta;
  config.erase("rope_theta");
  config.erase("num_key_value_heads");
  add_rope_scaling(keys, config);
}

void olmo2(const GgufKeys& keys, Json& config) {
  llama_like(keys, config, "olmo2", "Olmo2ForCausalLM");
  config["attention_bias"] = keys.has_tensor("blk.0.attn_q.bias");
  if (keys.integer("attention.sliding_window", 0) > 0) keys.refuse("attention.sliding_window");  // OLMo 3
}

void granite(const GgufKeys& keys, Json& config) {
  llama_like(keys, config, "granite", "GraniteForCausalLM");
  config["attention_bias"] = keys.has_tensor("blk.0.attn_q.bias");
  config["mlp_bias"] = keys.has_tensor("blk.0.ffn_gate.bias");
  config["attention_multiplier"] = keys.number("attention.scale", 1 / std::sqrt(static_cast<double>(keys.head_dim)));
  config["embedding_multiplier"] = keys.number("embedding_scale", 1);
  config["residual_multiplier"] = keys.number("residual_scale", 1);
  config["logits_scaling"] = keys.number("logit_scale");
}

void stablelm(const GgufKeys& keys, Json& config) {
  set_type(config, "stablelm", "StableLmForCausalLM");
  config["hidden_act"] = "silu";
  config["layer_norm_eps"] = keys.number("attention.layer_norm_epsilon");
  config["use_parallel_residual"] = keys.flag("use_parallel_residual", false);
  config["use_qkv_bias"] = keys.has_tensor("blk.0.attn_q.bias");
  config["qk_layernorm"] = keys.has_tensor("blk.0.attn_q_norm.weight");
  add_partial_rotation(keys, config);
  add_rope_scaling(keys, config);
}

void falcon(const GgufKeys& keys, Json& config) {
  set_type(config, "falcon", "FalconForCausalLM");
  config["layer_norm_epsilon"] = keys.number("attention.layer_norm_epsilon");
  config["activation"] = "gelu";
  config["alibi"] = false;
  config["parallel_attn"] = true;
  config["bias"] = keys.has_tensor("blk.0.attn_qkv.bias");
  const bool two_norms = keys.has_tensor(kSecondNorm), groups = keys.kv_heads > 1 || two_norms;
  config["multi_query"] = true;  // counts only without groups
  config["new_decoder_architecture"] = groups;
  if (keys.text("tensor_data_layout", "jploski") != "jploski") keys.refuse("tensor_data_layout");
  if (groups) config["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
  config["num_kv_heads"] = keys.kv_heads;
  config["ffn_hidden_size"] = config["intermediate_size"];
  config.erase("intermediate_size");
  config.erase("num_key_value_heads");
  add_rope_scaling(keys, config);
}

void gpt2(const GgufKeys& keys, Json& config) {
  config = {{"n_embd", keys.hidden},
            {"n_layer", keys.layers},
            {"n_head", keys.heads},
            {"n_positions", config["max_position_embeddings"]},
            {"n_inner", config["intermediate_size"]},
            {"vocab_size", config["vocab_size"]},
            {"tie_word_embeddings", config["tie_word_embeddings"]},
            {"pad_token_id", nullptr}};
  set_type(config, "gpt2", "GPT2LMHeadModel");
  config["activation_function"] = "gelu_new";
  config["layer_norm_epsilon"] = keys.number("attention.layer_norm_epsilon");
}

constexpr GgufName kOutside[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr GgufName kNeoxOutside[] = {
    {"token_embd", "gpt_neox.embed_in"}, {"output_norm", "gpt_neox.final_layer_norm"}, {"output", "embed_out"}};
constexpr GgufName kFalconOutside[] = {
    {"token_embd", "transformer.word_embeddings"}, {"output_norm", "transformer.ln_f"}, {"output", "lm_head"}};
constexpr GgufName kGpt2Outside[] = {{"token_embd", "transformer.wte"},
                                     {"position_embd", "transformer.wpe"},
                                     {"output_norm", "transformer.ln_f"},
                                     {"output", "lm_head"}};

// q and k in the order that rotates neighbours.
constexpr GgufName kLlama[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj", Change::RotationOrder},
    {"attn_k", "self_attn.k_proj", Change::RotationOrder},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate_exps", "block_sparse_moe.experts.{}.w1", Change::Slice},
    {"ffn_down_exps", "block_sparse_moe.experts.{}.w2", Change::Slice},
    {"ffn_up_exps", "block_sparse_moe.experts.{}.w3", Change::Slice},
};
constexpr GgufName kQwen[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
constexpr GgufName kGemma2[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
constexpr GgufName kOlmo2[] = {
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};
constexpr GgufName kPhi3[] = {
    {"attn_norm", "input_layernorm"},         {"attn_qkv", "self_attn.qkv_proj"}, {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"}, {"ffn_up", "mlp.gate_up_proj"},     {"ffn_down", "mlp.down_proj"},
};
constexpr GgufName kNeox[] = {
    {"attn_norm", "input_layernorm"},   {"attn_qkv", "attention.query_key_value", Change::GroupedQkv},
    {"attn_output", "attention.dense"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_up", "mlp.dense_h_to_4h"},    {"ffn_down", "mlp.dense_4h_to_h"},
};
constexpr GgufName kStablelm[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_layernorm.norms.{}", Change::Slice},
    {"attn_k_norm", "self_attn.k_layernorm.norms.{}", Change::Slice},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
// With two norms the file's attn_norm_2 is the attention's and attn_norm the MLP's.
constexpr GgufName kFalcon[] = {
    {"attn_norm", "input_layernorm"},        {"attn_qkv", "self_attention.query_key_value", Change::GroupedQkv},
    {"attn_output", "self_attention.dense"}, {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
};
constexpr GgufName kFalconTwoNorms[] = {
    {"attn_norm", "ln_mlp"},
    {"attn_norm_2", "ln_attn"},
    {"attn_qkv", "self_attention.query_key_value", Change::GroupedQkv},
    {"attn_output", "self_attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
};
constexpr GgufName kGpt2[] = {
    {"attn_norm", "ln_1"},
    {"attn_qkv", "attn.c_attn", Change::Transposed},
    {"attn_output", "attn.c_proj", Change::Transposed},
    {"ffn_norm", "ln_2"},
    {"ffn_up", "mlp.c_fc", Change::Transposed},
    {"ffn_down", "mlp.c_proj", Change::Transposed},
};

constexpr const char *kLayers = "model.layers.{}", *kHidden = "transformer.h.{}";

const GgufArchitecture kArchitectures[] = {
    {"llama", kLayers, kOutside, kLlama, false, llama},
    {"qwen2", kLayers, kOutside, kQwen, false, qwen2},
    {"qwen3", kLayers, kOutside, kQwen, false, qwen3},
    {"gemma", kLayers, kOutside, kQwen, true, gemma},
    {"gemma2", kLayers, kOutside, kGemma2, true, gemma2},
    {"gemma3", kLayers, kOutside, kGemma2, true, gemma3},
    {"phi3", kLayers, kOutside, kPhi3, false, phi3},
    {"gptneox", "gpt_neox.layers.{}", kNeoxOutside, kNeox, false, gptneox},
    {"olmo2", kLayers, kOutside, kOlmo2, false, olmo2},
    {"granite", kLayers, kOutside, kLlama, false, granite},
    {"stablelm", kLayers, kOutside, kStablelm, false, stablelm},
    {"falcon", kHidden, kFalconOutside, kFalconTwoNorms, false, falcon, kSecondNorm},
    {"falcon", kHidden, kFalconOutside, kFalcon, false, falcon},
    {"gpt2", kHidden, kGpt2Outside, kGpt2, false, gpt2},
};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() { return kArchitectures; }

}  // namespace hierarchos::formats
