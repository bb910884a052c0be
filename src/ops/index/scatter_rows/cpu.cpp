#include <cstring>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> scatter_rows_cpu(CpuBackend&, const KernelRequest& request) {
  const DType from = request.inputs[1].dtype, to = request.outputs[0].dtype;
  const Shape& shape = request.outputs[0].shape;
  const int64_t slots = shape[0], rows = request.inputs[1].shape[0], row_stride = request.inputs[1].strides[0];
  int64_t n = 1;
  for (int a = 1; a < shape.rank(); ++a) n *= shape[a];
  return cpu::make_kernel("scatter_rows", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto* places = reinterpret_cast<const int32_t*>(at[2]);
    cpu::parallel_rows(pool, rows, n, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        if (places[t] < 0 || places[t] >= slots) continue;
        const std::byte* row = at[1] + t * row_stride * static_cast<int64_t>(size_of(from));
        std::byte* target = at[3] + places[t] * n * static_cast<int64_t>(size_of(to));
        if (from == to)
          std::memcpy(target, row, static_cast<size_t>(n) * size_of(from));
        else if (from == DType::F32)
          cpu::from_float(to, reinterpret_cast<const float*>(row), target, n);
        else if (to == DType::F32)
          cpu::to_float(from, row, reinterpret_cast<float*>(target), n);
        else
          cpu::from_float(to, cpu::as_float(from, row, cpu::thread_buffer(0, n), n), target, n);
      }
    });
  });
}

}  // namespace hierarchos::ops
