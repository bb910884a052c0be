#include "ops/operator.h"

namespace hierarchos::ops {

void grouped_matmul_reference(const Attrs& attrs, std::span<const RefTensor* const> in, std::span<RefTensor> out) {
  const int64_t rows = in[0]->type.shape[0], k = in[0]->type.shape[1], n = out[0].type.shape[1], tile = attrs.i("tile");
  const bool transposed = attrs.i_or("transposed", 0) != 0;
  for (int64_t r = 0; r < rows; ++r) {
    const auto expert = static_cast<int64_t>(in[2]->data[static_cast<size_t>(r / tile)]);
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < k && expert >= 0; ++i) {
        const int64_t at = expert * n * k + (transposed ? i * n + j : j * k + i);
        sum += in[0]->data[static_cast<size_t>(r * k + i)] * in[1]->data[static_cast<size_t>(at)];
      }
      out[0].data[static_cast<size_t>(r * n + j)] = sum;
    }
  }
}

void grouped_matmul_backward_reference(const Attrs& attrs, std::span<const RefTensor* const> in,
                                       std::span<RefTensor> out) {
  const int64_t rows = in[0]->type.shape[0], n = in[0]->type.shape[1], k = in[1]->type.shape[1], tile = attrs.i("tile");
  for (int64_t r = 0; r < rows; ++r) {
    const auto expert = static_cast<int64_t>(in[2]->data[static_cast<size_t>(r / tile)]);
    if (expert < 0) continue;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < k; ++i)
        out[0].data[static_cast<size_t>((expert * n + j) * k + i)] +=
            in[0]->data[static_cast<size_t>(r * n + j)] * in[1]->data[static_cast<size_t>(r * k + i)];
  }
}

}  // namespace hierarchos::ops
