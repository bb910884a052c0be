#include <cmath>

#include "ops/operator.h"

namespace hierarchos::ops {

void adamw_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  if (inputs[5]->data[0] == 0) return;
  const double beta1 = attrs.f("beta1"), beta2 = attrs.f("beta2");
  const std::vector<double>& hyper = inputs[4]->data;
  const double lr = hyper[0], correction1 = hyper[1], root_correction2 = hyper[2], grad_scale = hyper[3];
  for (size_t i = 0; i < outputs[0].data.size(); ++i) {
    double &p = outputs[0].data[i], &m = outputs[1].data[i], &v = outputs[2].data[i];
    const double g = inputs[1]->data[i] * grad_scale;
    p *= 1 - lr * attrs.f("weight_decay");
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    p -= lr / correction1 * m / (std::sqrt(v) / root_correction2 + attrs.f("eps"));
  }
}

}  // namespace hierarchos::ops
