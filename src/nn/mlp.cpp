#include "nn/mlp.h"

#include <array>

#include "ops/pointwise/pointwise.h"

namespace hierarchos::nn {

Value mlp(Value x, const std::string& act, const MlpWeights& weights) {
  if (!weights.gate) return linear(ops::activation(act, linear(x, weights.up)), weights.down);
  const std::array both = {*weights.gate, weights.up};
  const std::vector<Value> y = linears(x, both);
  return linear(ops::mul(ops::activation(act, y[0]), y[1]), weights.down);
}

}  // namespace hierarchos::nn
