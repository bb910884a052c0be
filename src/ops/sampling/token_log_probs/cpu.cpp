#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"
#include "ops/sampling/sample/rows.h"

namespace hierarchos::ops {
namespace {

// Indices of the largest `count`, best first. Few blocks hold them: those of the largest maxima.
void likeliest(const float* x, int64_t n, int64_t count, int32_t* ids) {
  thread_local std::vector<float> largest, values;
  thread_local std::vector<int32_t> indices;
  const int64_t blocks = n / cpu::kScoreBlock;
  float bound = -std::numeric_limits<float>::infinity();
  if (count <= blocks / 2) {
    largest.resize(static_cast<size_t>(blocks));
    cpu::block_maxima(x, n, largest.data());
    std::nth_element(largest.begin(), largest.begin() + (count - 1), largest.end(), std::greater<>());
    bound = largest[static_cast<size_t>(count - 1)];
  }
  values.resize(static_cast<size_t>(n + cpu::kScoreBlock));
  indices.resize(static_cast<size_t>(n + cpu::kScoreBlock));
  const int64_t found = cpu::gather_at_least(x, n, bound, 0, values.data(), indices.data());
  const auto middle = indices.begin() + std::min(count, found);
  std::partial_sort(indices.begin(), middle, indices.begin() + found,
                    [&](int32_t a, int32_t b) { return x[a] != x[b] ? x[a] > x[b] : a < b; });
  std::copy(indices.begin(), middle, ids);
  std::fill(ids + std::min(count, found), ids + count, -1);  // NaN
}

}  // namespace

std::unique_ptr<Kernel> token_log_probs_cpu(CpuBackend&, const KernelRequest& request) {
  const int64_t rows = request.inputs[0].shape[0], n = request.inputs[0].shape[1];
  const int64_t count = request.attrs.i("count");
  return cpu::make_kernel("token_log_probs", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    cpu::parallel_rows(pool, rows, n, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const float* x = reinterpret_cast<const float*>(at[0]) + r * n;
        int32_t* ids = reinterpret_cast<int32_t*>(at[2]) + r * (count + 1);
        float* values = reinterpret_cast<float*>(at[3]) + r * (count + 1);
        ids[0] = reinterpret_cast<const int32_t*>(at[1])[r];
        if (count > 0) likeliest(x, n, count, ids + 1);
        const float top = x[cpu::argmax(x, n)];
        const double minus = static_cast<double>(top) + std::log(cpu::sum_exp_scaled(x, top, 1, n));
        for (int64_t j = 0; j <= count; ++j)
          values[j] = ids[j] >= 0 && ids[j] < n ? static_cast<float>(static_cast<double>(x[ids[j]]) - minus)
                                                : -std::numeric_limits<float>::infinity();
      }
    });
  });
}

}  // namespace hierarchos::ops
