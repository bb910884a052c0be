#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/operator.h"

namespace hierarchos::ops {

void top_k_reference(const Attrs& attrs, std::span<const RefTensor* const> in, std::span<RefTensor> out) {
  const int64_t rows = in[0]->type.shape[0], n = in[0]->type.shape[1], k = attrs.i("k");
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t t = 0; t < rows; ++t) {
    const double* x = in[0]->data.data() + t * n;
    const auto key = [&](int64_t i) { return std::isnan(x[i]) ? -std::numeric_limits<double>::infinity() : x[i]; };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) > key(b); });
    for (int64_t i = 0; i < k; ++i) {
      out[0].data[static_cast<size_t>(t * k + i)] = x[order[static_cast<size_t>(i)]];
      out[1].data[static_cast<size_t>(t * k + i)] = static_cast<double>(order[static_cast<size_t>(i)]);
    }
  }
}

}  // namespace hierarchos::ops
