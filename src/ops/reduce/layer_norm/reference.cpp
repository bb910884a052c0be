#include <cmath>

#include "ops/operator.h"

namespace hierarchos::ops {

void layer_norm_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor& x = *inputs[0];
  const RefTensor* weight = attrs.i_or("weight", 0) ? inputs[1] : nullptr;
  const RefTensor* bias = attrs.i_or("bias", 0) ? inputs.back() : nullptr;
  const auto n = static_cast<size_t>(x.type.shape.back());
  for (size_t row = 0; row < outputs[1].data.size(); ++row) {
    const double* in = x.data.data() + row * n;
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; ++i) mean += in[i];
    mean /= static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + attrs.f("eps"));
    outputs[1].data[row] = mean;
    outputs[2].data[row] = rstd;
    for (size_t i = 0; i < n; ++i)
      outputs[0].data[row * n + i] = (in[i] - mean) * rstd * (weight ? weight->data[i] : 1) + (bias ? bias->data[i] : 0);
  }
}

void layer_norm_backward_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &dy = *inputs[0], &x = *inputs[1], &mean = *inputs[2], &rstd = *inputs[3];
  const auto n = static_cast<size_t>(x.type.shape.back());
  for (size_t row = 0; row < rstd.data.size(); ++row) {
    const auto g = [&](size_t i) { return dy.data[row * n + i] * (inputs.size() > 4 ? inputs[4]->data[i] : 1); };
    const auto normed = [&](size_t i) { return (x.data[row * n + i] - mean.data[row]) * rstd.data[row]; };
    double sum = 0, dot = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += g(i);
      dot += g(i) * normed(i);
    }
    for (size_t i = 0; i < n; ++i)
      outputs[0].data[row * n + i] = rstd.data[row] * (g(i) - sum / static_cast<double>(n) - normed(i) * dot / static_cast<double>(n));
  }
}

}  // namespace hierarchos::ops
