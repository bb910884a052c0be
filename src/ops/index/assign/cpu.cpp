#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/strided.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> assign_cpu(CpuBackend&, const KernelRequest& request) {
  const DType from = request.inputs[1].dtype, to = request.outputs[0].dtype;
  const cpu::Loops loops = cpu::Loops::over(request.outputs[0].shape, std::span(request.inputs).subspan(1));
  return cpu::make_kernel("assign", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    cpu::parallel_rows(pool, loops.elements(), 1, [&](int64_t first, int64_t last) {
      const int64_t n = last - first;
      std::byte* target = at[2] + first * static_cast<int64_t>(size_of(to));
      const auto copy = [&](std::byte* into) {
        cpu::copy_elements(at[1], size_of(from), loops.dims, loops.strides[0], first, n, into);
      };
      if (from == to) return copy(target);
      // Through fp32: gathered, widened, rounded.
      auto* gathered = reinterpret_cast<std::byte*>(cpu::thread_buffer(0, cpu::kTaskElements));
      float* wide = cpu::thread_buffer(1, cpu::kTaskElements);
      copy(gathered);
      cpu::to_float(from, gathered, wide, n);
      cpu::from_float(to, wide, target, n);
    });
  });
}

}  // namespace hierarchos::ops
