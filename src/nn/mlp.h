// Feed-forward blocks.
#pragma once

#include <optional>
#include <string>

#include "nn/linear.h"

namespace hierarchos::nn {

// Gated: down(act(gate(x)) · up(x)), of two projections or one whose first half is the gate. Else down(act(up(x))).
struct MlpWeights {
  std::optional<LinearWeights> gate, gate_up;
  std::optional<LinearWeights> up;  // absent with gate_up
  LinearWeights down;
};

// act: the activation's Hugging Face name.
Value mlp(Value x, const std::string& act, const MlpWeights& weights);

}  // namespace hierarchos::nn
