#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

enum class Kind { Sum, Mean, Max };

// The operand as [outer, middle, inner]; the middle is reduced away. Long middles are cut into chunks, whose partial
// results (doubles) are combined in order by a second pass.
struct Plan {
  Kind kind;
  DType from, to;
  int64_t outer = 1, middle = 1, inner = 1;
  int64_t chunk = 0, chunks = 1;        // along the middle
  int64_t columns = 0, column_tasks = 1;  // along the inner axis

  double start() const { return kind == Kind::Max ? -std::numeric_limits<double>::infinity() : 0; }
  double combine(double a, double b) const {
    if (kind != Kind::Max) return a + b;
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
  }
  double finish(double v) const { return kind == Kind::Mean ? v / static_cast<double>(middle) : v; }
};

void store(const Plan& p, std::byte* to, int64_t at, const double* values, int64_t n) {
  float buffer[256];
  for (int64_t done = 0; done < n;) {
    const int64_t m = std::min<int64_t>(256, n - done);
    for (int64_t i = 0; i < m; ++i) buffer[i] = static_cast<float>(p.finish(values[done + i]));
    cpu::from_float(p.to, buffer, to + (at + done) * static_cast<int64_t>(size_of(p.to)), m);
    done += m;
  }
}

// A piece of one row of the middle.
double reduce_row(const Plan& p, const std::byte* from, int64_t n) {
  constexpr int64_t kBlock = 4096;
  double total = p.start();
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    float* buffer = p.from == DType::F32 ? nullptr : cpu::thread_buffer(0, kBlock);
    const float* x = cpu::as_float(p.from, from + i * static_cast<int64_t>(size_of(p.from)), buffer, m);
    total = p.combine(total, p.kind == Kind::Max ? static_cast<double>(cpu::max(x, m)) : cpu::sum(x, m));
  }
  return total;
}

// Rows [first, last) of the middle over `n` columns: sums in double, or the largest in float.
void reduce_columns(const Plan& p, const std::byte* from, int64_t first, int64_t last, int64_t n, double* result) {
  const auto size = static_cast<int64_t>(size_of(p.from));
  float* buffer = cpu::thread_buffer(0, n);
  if (p.kind == Kind::Max) {
    float* largest = cpu::thread_buffer(1, n);
    std::fill_n(largest, n, -std::numeric_limits<float>::infinity());
    for (int64_t m = first; m < last; ++m) cpu::max_to(largest, cpu::as_float(p.from, from + m * p.inner * size, buffer, n), n);
    for (int64_t i = 0; i < n; ++i) result[i] = static_cast<double>(largest[i]);
    return;
  }
  std::fill_n(result, n, 0.0);
  for (int64_t m = first; m < last; ++m) cpu::add_to(result, cpu::as_float(p.from, from + m * p.inner * size, buffer, n), n);
}

void run(const Plan& p, ThreadPool& pool, std::span<std::byte* const> at) {
  const auto size = static_cast<int64_t>(size_of(p.from));
  auto* partial = p.chunks > 1 ? reinterpret_cast<double*>(at[2]) : nullptr;
  if (p.inner == 1) {
    // Several rows a task where they are short.
    const int64_t pieces = p.outer * p.chunks, width = std::min(p.chunk, p.middle);
    cpu::parallel_rows(pool, pieces, width, [&](int64_t first, int64_t last) {
      for (int64_t piece = first; piece < last; ++piece) {
        const int64_t o = piece / p.chunks, begin = piece % p.chunks * p.chunk, n = std::min(p.chunk, p.middle - begin);
        const double v = reduce_row(p, at[0] + (o * p.middle + begin) * size, n);
        if (partial)
          partial[piece] = v;
        else
          store(p, at[1], o, &v, 1);
      }
    });
  } else {
    pool.parallel_for(p.outer * p.chunks * p.column_tasks, [&](int64_t task, int) {
      const int64_t column = task % p.column_tasks * p.columns, piece = task / p.column_tasks;
      const int64_t o = piece / p.chunks, begin = piece % p.chunks * p.chunk, end = std::min(p.middle, begin + p.chunk);
      const int64_t n = std::min(p.columns, p.inner - column);
      double own[512];
      double* result = partial ? partial + piece * p.inner + column : own;
      reduce_columns(p, at[0] + (o * p.middle * p.inner + column) * size, begin, end, n, result);
      if (!partial) store(p, at[1], o * p.inner + column, result, n);
    });
  }
  if (!partial) return;
  cpu::parallel_rows(pool, p.outer * p.inner, p.chunks, [&](int64_t first, int64_t last) {
    for (int64_t e = first; e < last; ++e) {
      double v = p.start();
      for (int64_t c = 0; c < p.chunks; ++c) v = p.combine(v, partial[(e / p.inner * p.chunks + c) * p.inner + e % p.inner]);
      store(p, at[1], e, &v, 1);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> reduce_cpu(CpuBackend&, const KernelRequest& request) {
  Plan p;
  const std::string& kind = request.attrs.s("kind");
  p.kind = kind == "max" ? Kind::Max : kind == "mean" ? Kind::Mean : Kind::Sum;
  p.from = request.inputs[0].dtype;
  p.to = request.outputs[0].dtype;
  const Shape& shape = request.inputs[0].shape;
  for (int a = 0; a < shape.rank(); ++a)
    (a < request.attrs.i("begin") ? p.outer : a < request.attrs.i("end") ? p.middle : p.inner) *= shape[a];
  if (p.inner == 1) {
    p.chunk = 65536;
  } else {
    p.columns = std::clamp<int64_t>(p.inner, 1, 512);
    p.column_tasks = (p.inner + p.columns - 1) / p.columns;
    p.chunk = std::max<int64_t>(64, 65536 / p.columns);
    // Enough columns or outer rows to spread: no second pass then.
    if (p.outer * p.column_tasks >= 64) p.chunk = std::max<int64_t>(p.middle, 1);
  }
  p.chunks = std::max<int64_t>(1, (p.middle + p.chunk - 1) / p.chunk);
  const int64_t scratch = p.chunks > 1 ? p.outer * p.chunks * p.inner * static_cast<int64_t>(sizeof(double)) : 0;
  return cpu::make_kernel(
      "reduce_" + kind, [p](ThreadPool& pool, std::span<std::byte* const> at) { run(p, pool, at); }, scratch);
}

}  // namespace hierarchos::ops
