#include <cmath>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

struct Norm {
  DType x, y, dy, weight, bias;
  bool weighted, biased;
  int64_t rows, n;
  double eps;
};

std::byte* row_at(std::byte* base, DType dtype, int64_t row, int64_t n) {
  return base + row * n * static_cast<int64_t>(size_of(dtype));
}

float* target(DType dtype, std::byte* row, float* buffer) { return dtype == DType::F32 ? reinterpret_cast<float*>(row) : buffer; }

void forward(const Norm& c, ThreadPool& pool, std::span<std::byte* const> at) {
  size_t next = 1;
  std::byte* x = at[0];
  std::byte* weights = c.weighted ? at[next++] : nullptr;
  std::byte* biases = c.biased ? at[next++] : nullptr;
  std::byte* y = at[next];
  auto *means = reinterpret_cast<float*>(at[next + 1]), *rstds = reinterpret_cast<float*>(at[next + 2]);
  cpu::parallel_rows(pool, c.rows, c.n, [&](int64_t first, int64_t last) {
    float *buffer = cpu::thread_buffer(0, c.n), *result = cpu::thread_buffer(1, c.n);
    const float* weight = weights ? cpu::as_float(c.weight, weights, cpu::thread_buffer(2, c.n), c.n) : nullptr;
    const float* bias = biases ? cpu::as_float(c.bias, biases, cpu::thread_buffer(3, c.n), c.n) : nullptr;
    for (int64_t row = first; row < last; ++row) {
      const float* in = cpu::as_float(c.x, row_at(x, c.x, row, c.n), buffer, c.n);
      const auto n = static_cast<double>(c.n);
      const double mean = cpu::sum(in, c.n) / n;
      const auto rounded = static_cast<float>(mean);
      // Σ (x - mean)² from the rounded mean: the shift costs n · (mean - rounded)².
      const double shift = mean - static_cast<double>(rounded);
      const double variance = std::max(0.0, cpu::sum_squared_difference(in, rounded, c.n) / n - shift * shift);
      means[row] = rounded;
      rstds[row] = static_cast<float>(1 / std::sqrt(variance + c.eps));
      std::byte* to = row_at(y, c.y, row, c.n);
      float* out = target(c.y, to, result);
      cpu::normalise_row(in, rounded, rstds[row], weight, bias, out, c.n);
      if (c.y != DType::F32) cpu::from_float(c.y, out, to, c.n);
    }
  });
}

void backward(const Norm& c, ThreadPool& pool, std::span<std::byte* const> at) {
  std::byte *dy = at[0], *x = at[1], *weights = c.weighted ? at[4] : nullptr, *dx = at[c.weighted ? 5 : 4];
  const auto *means = reinterpret_cast<const float*>(at[2]), *rstds = reinterpret_cast<const float*>(at[3]);
  cpu::parallel_rows(pool, c.rows, c.n, [&](int64_t first, int64_t last) {
    float *in_buffer = cpu::thread_buffer(0, c.n), *grad_buffer = cpu::thread_buffer(1, c.n);
    float *result = cpu::thread_buffer(2, c.n), *normed = cpu::thread_buffer(4, c.n), *weighted = cpu::thread_buffer(5, c.n);
    const float* weight = weights ? cpu::as_float(c.weight, weights, cpu::thread_buffer(3, c.n), c.n) : nullptr;
    for (int64_t row = first; row < last; ++row) {
      const float* in = cpu::as_float(c.x, row_at(x, c.x, row, c.n), in_buffer, c.n);
      const float* grad = cpu::as_float(c.dy, row_at(dy, c.dy, row, c.n), grad_buffer, c.n);
      cpu::normalise_row(in, means[row], rstds[row], nullptr, nullptr, normed, c.n);
      if (weight) {
        cpu::scale_row(grad, 1, weight, 0, weighted, c.n);
        grad = weighted;
      }
      const auto n = static_cast<double>(c.n), r = static_cast<double>(rstds[row]);
      const double sum = cpu::sum(grad, c.n) / n, dot = cpu::dot(grad, normed, c.n) / n;
      std::byte* to = row_at(dx, c.x, row, c.n);
      float* out = target(c.x, to, result);
      // rstd · (g - mean(g) - normed · mean(g · normed))
      cpu::norm_gradient_row(grad, nullptr, 0, normed, rstds[row], static_cast<float>(-r * dot), static_cast<float>(-r * sum), out,
                             c.n);
      if (c.x != DType::F32) cpu::from_float(c.x, out, to, c.n);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> layer_norm_cpu(CpuBackend&, const KernelRequest& request) {
  Norm c{};
  c.x = request.inputs[0].dtype;
  c.y = request.outputs[0].dtype;
  c.weighted = request.attrs.i_or("weight", 0) != 0;
  c.biased = request.attrs.i_or("bias", 0) != 0;
  if (c.weighted) c.weight = request.inputs[1].dtype;
  if (c.biased) c.bias = request.inputs.back().dtype;
  c.rows = request.inputs[0].shape.rows();
  c.n = request.inputs[0].shape.back();
  c.eps = request.attrs.f("eps");
  return cpu::make_kernel("layer_norm", [c](ThreadPool& pool, std::span<std::byte* const> at) { forward(c, pool, at); });
}

std::unique_ptr<Kernel> layer_norm_backward_cpu(CpuBackend&, const KernelRequest& request) {
  Norm c{};
  c.dy = request.inputs[0].dtype;
  c.x = request.inputs[1].dtype;
  c.weighted = request.inputs.size() > 4;
  if (c.weighted) c.weight = request.inputs[4].dtype;
  c.rows = request.inputs[1].shape.rows();
  c.n = request.inputs[1].shape.back();
  return cpu::make_kernel("layer_norm_backward",
                          [c](ThreadPool& pool, std::span<std::byte* const> at) { backward(c, pool, at); });
}

}  // namespace hierarchos::ops
