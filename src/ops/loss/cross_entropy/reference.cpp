#include <algorithm>
#include <cmath>

#include "ops/operator.h"

namespace hierarchos::ops {

void cross_entropy_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &logits = *inputs[0], &labels = *inputs[1];
  const int64_t classes = logits.type.shape[1];
  for (size_t t = 0; t < labels.data.size(); ++t) {
    const double* row = logits.data.data() + static_cast<int64_t>(t) * classes;
    const double largest = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t v = 0; v < classes; ++v) sum += std::exp(row[v] - largest);
    const double lse = largest + std::log(sum);
    const auto label = static_cast<int64_t>(labels.data[t]);
    outputs[0].data[t] = label == -100 ? 0 : lse - row[label];
    outputs[1].data[t] = lse;
  }
}

void cross_entropy_backward_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &dloss = *inputs[0], &logits = *inputs[1], &labels = *inputs[2], &lse = *inputs[3];
  const int64_t classes = logits.type.shape[1];
  for (size_t t = 0; t < labels.data.size(); ++t) {
    const auto label = static_cast<int64_t>(labels.data[t]);
    if (label == -100) continue;  // stays zero
    for (int64_t v = 0; v < classes; ++v) {
      const auto at = t * static_cast<size_t>(classes) + static_cast<size_t>(v);
      outputs[0].data[at] = (std::exp(logits.data[at] - lse.data[t]) - (v == label ? 1 : 0)) * dloss.data[t];
    }
  }
}

}  // namespace hierarchos::ops
