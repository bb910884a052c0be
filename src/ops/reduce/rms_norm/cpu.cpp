#include <cmath>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

struct Norm {
  DType x, y, dy, weight;
  bool weighted;
  int64_t rows, n;
  double eps;
  float offset;
};

std::byte* row_at(std::byte* base, DType dtype, int64_t row, int64_t n) {
  return base + row * n * static_cast<int64_t>(size_of(dtype));
}

// Where a row of results is computed: in place if it is fp32.
float* target(DType dtype, std::byte* row, float* buffer) { return dtype == DType::F32 ? reinterpret_cast<float*>(row) : buffer; }

void forward(const Norm& c, ThreadPool& pool, std::span<std::byte* const> at) {
  std::byte *x = at[0], *weights = c.weighted ? at[1] : nullptr, *y = at[c.weighted ? 2 : 1];
  auto* rstd = reinterpret_cast<float*>(at[c.weighted ? 3 : 2]);
  cpu::parallel_rows(pool, c.rows, c.n, [&](int64_t first, int64_t last) {
    float* buffer = cpu::thread_buffer(0, c.n);
    float* result = cpu::thread_buffer(1, c.n);
    const float* weight = weights ? cpu::as_float(c.weight, weights, cpu::thread_buffer(2, c.n), c.n) : nullptr;
    for (int64_t row = first; row < last; ++row) {
      const float* in = cpu::as_float(c.x, row_at(x, c.x, row, c.n), buffer, c.n);
      const double mean_square = cpu::dot(in, in, c.n) / static_cast<double>(c.n);
      rstd[row] = static_cast<float>(1 / std::sqrt(mean_square + c.eps));
      std::byte* to = row_at(y, c.y, row, c.n);
      float* out = target(c.y, to, result);
      cpu::scale_row(in, rstd[row], weight, c.offset, out, c.n);
      if (c.y != DType::F32) cpu::from_float(c.y, out, to, c.n);
    }
  });
}

void backward(const Norm& c, ThreadPool& pool, std::span<std::byte* const> at) {
  std::byte *dy = at[0], *x = at[1], *weights = c.weighted ? at[3] : nullptr, *dx = at[c.weighted ? 4 : 3];
  const auto* rstd = reinterpret_cast<const float*>(at[2]);
  cpu::parallel_rows(pool, c.rows, c.n, [&](int64_t first, int64_t last) {
    float *in_buffer = cpu::thread_buffer(0, c.n), *grad_buffer = cpu::thread_buffer(1, c.n);
    float* result = cpu::thread_buffer(2, c.n);
    float* weight = weights ? cpu::thread_buffer(3, c.n) : nullptr;
    if (weight) {
      cpu::to_float(c.weight, weights, weight, c.n);
      for (int64_t i = 0; i < c.n; ++i) weight[i] += c.offset;
    }
    for (int64_t row = first; row < last; ++row) {
      const float* in = cpu::as_float(c.x, row_at(x, c.x, row, c.n), in_buffer, c.n);
      const float* grad = cpu::as_float(c.dy, row_at(dy, c.dy, row, c.n), grad_buffer, c.n);
      const double r = static_cast<double>(rstd[row]);
      const double dot = weight ? cpu::dot3(grad, weight, in, c.n) : cpu::dot(grad, in, c.n);
      const auto b = static_cast<float>(-r * r * r * dot / static_cast<double>(c.n));
      std::byte* to = row_at(dx, c.x, row, c.n);
      float* out = target(c.x, to, result);
      cpu::norm_gradient_row(grad, weight, 0, in, rstd[row], b, 0, out, c.n);
      if (c.x != DType::F32) cpu::from_float(c.x, out, to, c.n);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> rms_norm_cpu(CpuBackend&, const KernelRequest& request) {
  Norm c{};
  const TensorDesc& x = request.inputs[0];
  c.x = x.dtype;
  c.y = request.outputs[0].dtype;
  c.weighted = request.inputs.size() > 1;
  if (c.weighted) c.weight = request.inputs[1].dtype;
  c.rows = x.shape.rows();
  c.n = x.shape.back();
  c.eps = request.attrs.f("eps");
  c.offset = static_cast<float>(request.attrs.f_or("weight_offset", 0));
  return cpu::make_kernel("rms_norm", [c](ThreadPool& pool, std::span<std::byte* const> at) { forward(c, pool, at); });
}

std::unique_ptr<Kernel> rms_norm_backward_cpu(CpuBackend&, const KernelRequest& request) {
  Norm c{};
  c.dy = request.inputs[0].dtype;
  c.x = request.inputs[1].dtype;
  c.weighted = request.inputs.size() > 3;
  if (c.weighted) c.weight = request.inputs[3].dtype;
  c.rows = request.inputs[1].shape.rows();
  c.n = request.inputs[1].shape.back();
  c.offset = static_cast<float>(request.attrs.f_or("weight_offset", 0));
  return cpu::make_kernel("rms_norm_backward",
                          [c](ThreadPool& pool, std::span<std::byte* const> at) { backward(c, pool, at); });
}

}  // namespace hierarchos::ops
