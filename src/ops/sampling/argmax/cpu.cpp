#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> argmax_cpu(CpuBackend&, const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  const int64_t rows = request.inputs[0].shape[0], n = request.inputs[0].shape[1];
  return cpu::make_kernel("argmax", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    cpu::parallel_rows(pool, rows, n, [&](int64_t first, int64_t last) {
      float* buffer = dtype == DType::F32 ? nullptr : cpu::thread_buffer(0, n);
      for (int64_t t = first; t < last; ++t) {
        const float* row = cpu::as_float(dtype, at[0] + t * n * static_cast<int64_t>(size_of(dtype)), buffer, n);
        reinterpret_cast<int32_t*>(at[1])[t] = static_cast<int32_t>(cpu::argmax(row, n));
      }
    });
  });
}

}  // namespace hierarchos::ops
