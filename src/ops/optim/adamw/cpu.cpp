#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> adamw_cpu(CpuBackend&, const KernelRequest& request) {
  const double beta1 = request.attrs.f("beta1"), beta2 = request.attrs.f("beta2"), eps = request.attrs.f("eps"),
               weight_decay = request.attrs.f("weight_decay");
  const int64_t elements = request.inputs[0].shape.elements();
  return cpu::make_kernel("adamw", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    if (*reinterpret_cast<const int32_t*>(at[5]) == 0) return;
    const auto* hyper = reinterpret_cast<const float*>(at[4]);
    const double lr = static_cast<double>(hyper[0]);
    cpu::AdamWScalars s;
    s.decay = static_cast<float>(1 - lr * weight_decay);
    s.beta1 = static_cast<float>(beta1);
    s.rest1 = static_cast<float>(1 - beta1);
    s.beta2 = static_cast<float>(beta2);
    s.rest2 = static_cast<float>(1 - beta2);
    s.step = static_cast<float>(lr / static_cast<double>(hyper[1]));
    s.root_correction = hyper[2];
    s.eps = static_cast<float>(eps);
    s.grad_scale = hyper[3];
    // Operands 0, 2, 3 are results 6, 7, 8: the memory is the same.
    auto *param = reinterpret_cast<float*>(at[6]), *m = reinterpret_cast<float*>(at[7]), *v = reinterpret_cast<float*>(at[8]);
    const auto* grad = reinterpret_cast<const float*>(at[1]);
    cpu::parallel_rows(pool, elements, 1, [&](int64_t first, int64_t last) {
      cpu::adamw_rows(s, param + first, grad + first, m + first, v + first, last - first);
    });
  });
}

}  // namespace hierarchos::ops
