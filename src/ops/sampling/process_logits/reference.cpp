#include <cmath>
#include <limits>

#include "ops/operator.h"
#include "ops/sampling/process_logits/process_logits.h"

namespace hierarchos::ops {

void process_logits_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const int64_t rows = inputs[0]->type.shape[0], n = inputs[0]->type.shape[1], sequences = inputs[2]->type.shape[0];
  const int64_t edits = inputs[4]->type.shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    double* y = outputs[0].data.data() + r * n;
    const double* rules = inputs[1]->data.data() + r * kLogitRules;
    const auto each = [&](LogitEdit kind, auto&& change) {
      for (int64_t e = r * edits; e < (r + 1) * edits; ++e) {
        const double token = inputs[4]->data[static_cast<size_t>(e)];
        if (static_cast<int32_t>(inputs[5]->data[static_cast<size_t>(e)]) == kind && token >= 0 &&
            token < static_cast<double>(n))
          change(y[static_cast<int64_t>(token)], inputs[6]->data[static_cast<size_t>(e)]);
      }
    };
    for (int64_t i = 0; i < n; ++i) y[i] = inputs[0]->data[static_cast<size_t>(r * n + i)];
    each(kAdd, [](double& score, double value) { score += value; });
    const auto sequence = static_cast<int64_t>(inputs[3]->data[static_cast<size_t>(r)]);
    for (int64_t i = 0; i < n && sequence >= 0 && sequence < sequences; ++i) {
      const auto count = static_cast<int64_t>(inputs[2]->data[static_cast<size_t>(sequence * n + i)]);
      if (count == 0) continue;
      y[i] = y[i] < 0 ? y[i] * rules[kRepetitionPenalty] : y[i] / rules[kRepetitionPenalty];
      y[i] -= rules[kFrequencyPenalty] * static_cast<double>(count / 2);
      if (count > 1) y[i] -= rules[kPresencePenalty];
    }
    if (rules[kForce] != 0)
      for (int64_t i = 0; i < n; ++i) y[i] = -INFINITY;
    each(kBan, [](double& score, double) { score = -INFINITY; });
    each(kSet, [](double& score, double value) { score = value; });
    for (int64_t i = 0; i < n && rules[kRemoveInvalid] != 0; ++i) {
      if (std::isnan(y[i])) y[i] = 0;
      if (std::isinf(y[i])) y[i] = std::copysign(static_cast<double>(std::numeric_limits<float>::max()), y[i]);
    }
    each(kStretch, [](double& score, double value) {
      if (std::isfinite(score)) score += std::abs(score) * value;
    });
    each(kLateBan, [](double& score, double) { score = -INFINITY; });
  }
}

}  // namespace hierarchos::ops
