#include <cmath>

#include "ops/operator.h"

namespace hierarchos::ops {

void rms_norm_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor& x = *inputs[0];
  const auto n = static_cast<size_t>(x.type.shape.back());
  const double eps = attrs.f("eps"), offset = attrs.f_or("weight_offset", 0);
  for (size_t row = 0; row < outputs[1].data.size(); ++row) {
    double squares = 0;
    for (size_t i = 0; i < n; ++i) squares += x.data[row * n + i] * x.data[row * n + i];
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    outputs[1].data[row] = rstd;
    for (size_t i = 0; i < n; ++i)
      outputs[0].data[row * n + i] = x.data[row * n + i] * rstd * (inputs.size() > 1 ? inputs[1]->data[i] + offset : 1);
  }
}

void rms_norm_backward_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &dy = *inputs[0], &x = *inputs[1], &rstd = *inputs[2];
  const auto n = static_cast<size_t>(x.type.shape.back());
  const double offset = attrs.f_or("weight_offset", 0);
  const auto weight = [&](size_t i) { return inputs.size() > 3 ? inputs[3]->data[i] + offset : 1; };
  for (size_t row = 0; row < rstd.data.size(); ++row) {
    const double r = rstd.data[row];
    double dot = 0;
    for (size_t i = 0; i < n; ++i) dot += dy.data[row * n + i] * weight(i) * x.data[row * n + i];
    const double mean = dot / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i)
      outputs[0].data[row * n + i] = r * dy.data[row * n + i] * weight(i) - r * r * r * x.data[row * n + i] * mean;
  }
}

}  // namespace hierarchos::ops
