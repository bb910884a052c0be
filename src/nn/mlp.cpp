#include "nn/mlp.h"

#include <array>

#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos::nn {

Value mlp(Value x, const std::string& act, const MlpWeights& weights) {
  std::vector<Value> y;
  if (weights.gate_up) {
    const Value both = linear(x, *weights.gate_up);
    const int64_t width = both.shape().back() / 2;
    y = ops::split(both, -1, {width, width});
  } else if (weights.gate) {
    const std::array both = {*weights.gate, *weights.up};
    y = linears(x, both);
  } else {
    return linear(ops::activation(act, linear(x, *weights.up)), weights.down);
  }
  return linear(ops::mul(ops::activation(act, y[0]), y[1]), weights.down);
}

}  // namespace hierarchos::nn
