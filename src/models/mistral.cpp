// Mistral 7B, Nemo and their kin (transformers: models/mistral/modeling_mistral.py), and Mixtral, whose MLPs are
// mixtures of experts (models/mixtral/modeling_mixtral.py).
#include "models/llama_like.h"
#include "models/registry.h"

namespace hierarchos::models {
namespace {

// What follows from the sizes.
void describe_blocks(ConfigReader& config, Description& d, double default_eps, double default_theta) {
  read_head_dim(config, d);
  read_rms_norm(config, d, default_eps);
  d.rope = read_rope(config, d.head_dim, d.max_positions, {.theta = default_theta});
  expect_whole_rotation(config, d.rope, d.head_dim);
  set_attention_scale(d);
  d.activation = config.text("hidden_act", "silu");
  d.tied_head = config.flag("tie_word_embeddings", false);
  read_padding(config, d);
  set_llama_names(d);
}

}  // namespace

void describe_mistral(ConfigReader& config, Description& d) {
  read_sizes(config, d, {.intermediate = 14336, .kv_heads = 8, .max_positions = 4096 * 32});
  describe_blocks(config, d, 1e-6, 1e4);
  read_window(config, d, 4096);
}

void describe_mixtral(ConfigReader& config, Description& d) {
  read_sizes(config, d, {.intermediate = 14336, .kv_heads = 8, .max_positions = 4096 * 32});
  describe_blocks(config, d, 1e-5, 1e6);
  read_window(config, d, std::nullopt);
  nn::MoeSpec moe;
  moe.experts = config.size({"num_local_experts", "num_experts"}, 8);
  moe.per_token = config.size({"num_experts_per_tok"}, 2);
  moe.width = d.intermediate_size;
  d.moe = moe;
  const double aux_loss = config.number("router_aux_loss_coef", 0.001);
  if (config.flag("output_router_logits", false)) d.aux_loss = aux_loss;
  config.harmless({"router_jitter_noise"});  // of training, like dropout
  d.names.router = "block_sparse_moe.gate";
  d.names.gate = "block_sparse_moe.experts.{}.w1";
  d.names.up = "block_sparse_moe.experts.{}.w3";
  d.names.down = "block_sparse_moe.experts.{}.w2";
}

}  // namespace hierarchos::models
