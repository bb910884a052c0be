#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/operator.h"

namespace hierarchos::ops {

void token_log_probs_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs,
                               std::span<RefTensor> outputs) {
  const auto n = static_cast<size_t>(inputs[0]->type.shape[1]), count = static_cast<size_t>(attrs.i("count"));
  for (size_t r = 0; r < inputs[1]->data.size(); ++r) {
    const double* x = inputs[0]->data.data() + r * n;
    const double top = *std::max_element(x, x + n);
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += std::exp(x[i] - top);
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] > x[b] : a < b; });
    for (size_t j = 0; j <= count; ++j) {
      const double id = j == 0 ? inputs[1]->data[r] : static_cast<double>(order[j - 1]);
      outputs[0].data[r * (count + 1) + j] = id;
      const bool known = id >= 0 && id < static_cast<double>(n);
      outputs[1].data[r * (count + 1) + j] =
          known ? x[static_cast<size_t>(id)] - top - std::log(total) : static_cast<double>(-INFINITY);
    }
  }
}

}  // namespace hierarchos::ops
