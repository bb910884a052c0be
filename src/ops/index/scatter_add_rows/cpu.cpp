#include <algorithm>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {

// In `order`, equal ids stand together. A task takes the groups that begin in its range of positions, so no two tasks
// write the same row.
std::unique_ptr<Kernel> scatter_add_rows_cpu(CpuBackend&, const KernelRequest& request) {
  const DType dtype = request.inputs[1].dtype;
  const Shape& shape = request.outputs[0].shape;
  const int64_t table = shape[0], rows = request.inputs[1].shape[0], padding = request.attrs.i_or("padding_idx", -1);
  int64_t n = 1;
  for (int a = 1; a < shape.rank(); ++a) n *= shape[a];
  return cpu::make_kernel("scatter_add_rows", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto *ids = reinterpret_cast<const int32_t*>(at[2]), *order = reinterpret_cast<const int32_t*>(at[3]);
    auto* sums = reinterpret_cast<float*>(at[4]);
    constexpr int64_t kColumns = 512;
    cpu::parallel_rows(pool, rows, n, [&](int64_t first, int64_t last) {
      float* buffer = dtype == DType::F32 ? nullptr : cpu::thread_buffer(0, kColumns);
      double wide[kColumns];
      for (int64_t p = first; p < last; ++p) {
        const int64_t id = ids[order[p]];
        if (p > 0 && ids[order[p - 1]] == id) continue;  // its group began earlier
        if (id < 0 || id >= table || id == padding) continue;
        int64_t end = p + 1;
        while (end < rows && ids[order[end]] == id) ++end;
        for (int64_t c = 0; c < n; c += kColumns) {
          const int64_t m = std::min(kColumns, n - c);
          float* row = sums + id * n + c;
          std::copy_n(row, m, wide);
          for (int64_t q = p; q < end; ++q) {
            const std::byte* from = at[1] + (order[q] * n + c) * static_cast<int64_t>(size_of(dtype));
            cpu::add_to(wide, cpu::as_float(dtype, from, buffer, m), m);
          }
          for (int64_t i = 0; i < m; ++i) row[i] = static_cast<float>(wide[i]);
        }
      }
    });
  });
}

}  // namespace hierarchos::ops
