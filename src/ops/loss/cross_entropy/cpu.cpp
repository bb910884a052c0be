#include <cmath>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

const std::byte* row_at(const std::byte* base, DType dtype, int64_t row, int64_t n) {
  return base + row * n * static_cast<int64_t>(size_of(dtype));
}

}  // namespace

std::unique_ptr<Kernel> cross_entropy_cpu(CpuBackend&, const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  const int64_t rows = request.inputs[0].shape[0], classes = request.inputs[0].shape[1];
  return cpu::make_kernel("cross_entropy", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto* labels = reinterpret_cast<const int32_t*>(at[1]);
    auto *loss = reinterpret_cast<float*>(at[2]), *lses = reinterpret_cast<float*>(at[3]);
    cpu::parallel_rows(pool, rows, classes, [&](int64_t first, int64_t last) {
      float* buffer = dtype == DType::F32 ? nullptr : cpu::thread_buffer(0, classes);
      for (int64_t t = first; t < last; ++t) {
        const float* row = cpu::as_float(dtype, row_at(at[0], dtype, t, classes), buffer, classes);
        const float largest = cpu::max(row, classes);
        const double lse = static_cast<double>(largest) + std::log(cpu::sum_exp(row, largest, classes));
        lses[t] = static_cast<float>(lse);
        const int32_t label = labels[t];
        const bool scored = label >= 0 && label < classes;  // hosts have checked: else it is -100
        loss[t] = scored ? static_cast<float>(lse - static_cast<double>(row[label])) : 0.0f;
      }
    });
  });
}

std::unique_ptr<Kernel> cross_entropy_backward_cpu(CpuBackend&, const KernelRequest& request) {
  const DType dtype = request.inputs[1].dtype;
  const int64_t rows = request.inputs[1].shape[0], classes = request.inputs[1].shape[1];
  return cpu::make_kernel("cross_entropy_backward", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto *dloss = reinterpret_cast<const float*>(at[0]), *lse = reinterpret_cast<const float*>(at[3]);
    const auto* labels = reinterpret_cast<const int32_t*>(at[2]);
    cpu::parallel_rows(pool, rows, classes, [&](int64_t first, int64_t last) {
      float* buffer = dtype == DType::F32 ? nullptr : cpu::thread_buffer(0, classes);
      float* result = dtype == DType::F32 ? nullptr : cpu::thread_buffer(1, classes);
      for (int64_t t = first; t < last; ++t) {
        std::byte* to = at[4] + t * classes * static_cast<int64_t>(size_of(dtype));
        const int32_t label = labels[t];
        if (label < 0 || label >= classes) {
          std::fill_n(to, classes * static_cast<int64_t>(size_of(dtype)), std::byte{0});
          continue;
        }
        const float* row = cpu::as_float(dtype, row_at(at[1], dtype, t, classes), buffer, classes);
        float* out = dtype == DType::F32 ? reinterpret_cast<float*>(to) : result;
        cpu::exp_row(row, lse[t], dloss[t], out, classes);
        // The scored class apart: softmax - 1 without cancellation where it is near 1.
        const double p = std::expm1(static_cast<double>(row[label]) - static_cast<double>(lse[t]));
        out[label] = static_cast<float>(p * static_cast<double>(dloss[t]));
        if (dtype != DType::F32) cpu::from_float(dtype, out, to, classes);
      }
    });
  });
}

}  // namespace hierarchos::ops
