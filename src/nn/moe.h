// Mixtures of experts (Shazeer et al. 2017): a router sends each token to a few of many MLPs.
#pragma once

#include <optional>
#include <string>

#include "nn/linear.h"
#include "nn/mlp.h"

namespace hierarchos::nn {

struct MoeSpec {
  int64_t experts = 0, per_token = 0;
  int64_t width = 0;         // of an expert: gate and up are [width, hidden]
  bool renormalise = true;   // the weights of a token's experts sum to 1
  int64_t shared_width = 0;  // of an MLP that every token passes besides, weighted by a sigmoid gate; 0: none
};

struct MoeWeights {
  LinearWeights router;  // [experts, hidden]
  // Those of all experts, one after another: gate and up [experts · width, hidden], down [experts · hidden, width].
  Value gate, up, down;
  std::optional<MlpWeights> shared;
  std::optional<LinearWeights> shared_gate;
};

// How the tokens of a layer were spread: summed over layers, the load-balancing loss follows from it.
struct MoeLoad {
  Value chosen;         // [experts] fp32: how many tokens chose the expert, without a gradient
  Value probabilities;  // [experts] fp32: Σ over tokens of the router's probability
};

struct MoeInputs {
  Value segments;        // [T] I32: rows of segment -1 reach no expert and count for no load
  Value expert_ids;      // expert_ids() of the model's experts
  bool trained = false;  // a gradient may be asked for: look-ups get the orders that theirs need
  bool with_load = false;
};

struct MoeResult {
  Value out;  // [T, hidden]
  std::optional<MoeLoad> load;
};

// Constant [experts] I32: 0, 1, …
Value expert_ids(Graph& graph, int64_t experts);

// x [T, hidden] → [T, hidden].
MoeResult moe(Value x, const std::string& act, const MoeSpec& spec, const MoeWeights& weights, const MoeInputs& inputs);

// Fedus et al. 2021 as the reference computes it over all layers at once: experts · Σ_e f_e · p_e, the f_e being
// `chosen` and the p_e `probabilities` over the number of tokens (of segments ≥ 0) times `layers`. Rank 0.
Value load_balancing_loss(const MoeLoad& total, int64_t layers, Value segments);

}  // namespace hierarchos::nn
