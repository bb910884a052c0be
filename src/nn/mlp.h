// Feed-forward blocks.
#pragma once

#include <optional>
#include <string>

#include "nn/linear.h"

namespace hierarchos::nn {

struct MlpWeights {
  std::optional<LinearWeights> gate;  // present: down(act(gate(x)) · up(x)); absent: down(act(up(x)))
  LinearWeights up, down;
};

// act: the activation's Hugging Face name.
Value mlp(Value x, const std::string& act, const MlpWeights& weights);

}  // namespace hierarchos::nn
