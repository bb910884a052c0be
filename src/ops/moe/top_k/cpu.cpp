#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> top_k_cpu(CpuBackend&, const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  const auto size = static_cast<int64_t>(size_of(dtype));
  const int64_t rows = request.inputs[0].shape[0], n = request.inputs[0].shape[1], k = request.attrs.i("k");
  return cpu::make_kernel("top_k", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    cpu::parallel_rows(pool, rows, 4 * n, [&](int64_t first, int64_t last) {
      float* buffer = dtype == DType::F32 ? nullptr : cpu::thread_buffer(0, n);
      auto* order = reinterpret_cast<int32_t*>(cpu::thread_buffer(1, n));
      for (int64_t t = first; t < last; ++t) {
        const float* x = cpu::as_float(dtype, at[0] + t * n * size, buffer, n);
        const auto key = [&](int32_t i) { return x[i] == x[i] ? x[i] : -std::numeric_limits<float>::infinity(); };
        std::iota(order, order + n, 0);
        std::partial_sort(order, order + k, order + n, [&](int32_t a, int32_t b) {
          const float ka = key(a), kb = key(b);
          return ka > kb || (ka == kb && a < b);
        });
        for (int64_t i = 0; i < k; ++i) {
          const std::byte* from = at[0] + (t * n + order[i]) * size;
          std::copy(from, from + size, at[1] + (t * k + i) * size);
          reinterpret_cast<int32_t*>(at[2])[t * k + i] = order[i];
        }
      }
    });
  });
}

}  // namespace hierarchos::ops
