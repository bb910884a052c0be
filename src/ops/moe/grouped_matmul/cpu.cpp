// Runs of tiles with one expert are products of their own, made of the same blocks as matmul's.
#include <algorithm>

#include "ops/cpu/kernel.h"
#include "ops/cpu_tasks.h"
#include "ops/matmul/matmul/gemm.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kBlockRows = 64, kBlockColumns = 64;  // of a task, or a tile's rows if those are more

struct Sizes {
  int64_t rows = 0, n = 0, k = 0, tile = 0, experts = 0;
  bool transposed = false;
  DType x = DType::F32, y = DType::F32;
  gemm::Source w;  // without data
};

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Columns [n0, n0 + n) of m rows of y, all of one expert.
void product(const Sizes& s, const std::byte* x, const std::byte* w, int64_t expert, int64_t m, int64_t n0, int64_t n,
             std::byte* y) {
  const auto y_size = static_cast<int64_t>(size_of(s.y));
  float* sums = gemm::thread_buffer(0, m * n);
  gemm::Source weights = s.w;
  weights.data = w;
  const int64_t first = expert * s.n;  // row of w that the expert begins at
  if (s.transposed) weights.data += expert * s.k * s.n * static_cast<int64_t>(size_of(s.w.dtype));
  if (m <= kFewRows && !s.transposed) {
    const float* rows = reinterpret_cast<const float*>(x);
    if (s.x != DType::F32) {
      float* room = gemm::thread_buffer(2, m * s.k);
      gemm::load(x, s.x, m * s.k, room);
      rows = room;
    }
    gemm::multiply_rows(rows, s.k, m, weights, first + n0, n, s.k, sums, n);
  } else {
    gemm::Source rows;
    rows.data = x;
    rows.dtype = s.x;
    rows.row_stride = s.k;
    const int64_t depth = std::min(s.k, gemm::kDepth);
    float* a = gemm::thread_buffer(2, gemm::packed_floats_a(m, depth));
    float* b = gemm::thread_buffer(3, gemm::packed_floats_b(n, depth));
    for (int64_t k0 = 0; k0 < s.k; k0 += depth) {
      const int64_t some = std::min(depth, s.k - k0);
      gemm::pack_a(rows, 0, m, k0, some, {}, a);
      gemm::pack_b(weights, (s.transposed ? 0 : first) + n0, n, k0, some, b);
      gemm::multiply(m, n, some, a, b, sums, n, k0 > 0);
    }
  }
  for (int64_t i = 0; i < m; ++i) gemm::store(sums + i * n, n, s.y, y + (i * s.n + n0) * y_size);
}

// A task's rows [r0, r1) and columns [n0, n0 + n).
void block(const Sizes& s, std::span<std::byte* const> at, int64_t r0, int64_t r1, int64_t n0, int64_t n) {
  const auto* tile_expert = reinterpret_cast<const int32_t*>(at[2]);
  const auto x_size = static_cast<int64_t>(size_of(s.x)), y_size = static_cast<int64_t>(size_of(s.y));
  for (int64_t r = r0; r < r1;) {
    const int32_t expert = tile_expert[r / s.tile];
    int64_t end = r;
    while (end < r1 && tile_expert[end / s.tile] == expert) end = std::min(r1, (end / s.tile + 1) * s.tile);
    std::byte* y = at[3] + r * s.n * y_size;
    if (expert >= 0 && expert < s.experts && s.k > 0) {
      product(s, at[0] + r * s.k * x_size, at[1], expert, end - r, n0, n, y);
    } else {
      for (int64_t i = 0; i < end - r; ++i) std::fill_n(y + (i * s.n + n0) * y_size, n * y_size, std::byte{0});
    }
    r = end;
  }
}

}  // namespace

std::unique_ptr<Kernel> grouped_matmul_cpu(CpuBackend&, const KernelRequest& request) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1];
  Sizes s;
  s.rows = x.shape[0];
  s.k = x.shape[1];
  s.n = request.outputs[0].shape[1];
  s.tile = request.attrs.i("tile");
  s.experts = request.attrs.i("experts");
  s.transposed = request.attrs.i_or("transposed", 0) != 0;
  s.x = x.dtype;
  s.y = request.outputs[0].dtype;
  if (w.layout != kRowMajor) throw UnsupportedError("grouped_matmul on the CPU takes no prepared weights");
  s.w.dtype = w.dtype;
  s.w.storage = w.storage;
  s.w.columns = w.shape[1];
  s.w.row_stride = s.transposed ? 1 : s.k;
  s.w.k_stride = s.transposed ? s.n : 1;
  // Whole tiles a task; columns as many as make a task worth its while when there are few rows.
  const int64_t rows = std::max(s.tile, kBlockRows / s.tile * s.tile);
  const int64_t columns = s.rows <= kBlockRows ? std::max(kBlockColumns, up(s.n, 64)) : kBlockColumns * 4;
  const int64_t row_blocks = up(s.rows, rows), column_blocks = up(s.n, columns);
  const double work = static_cast<double>(s.rows) * static_cast<double>(s.n) * static_cast<double>(s.k);
  return cpu::make_kernel("grouped_matmul", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    for_tasks(pool, work, row_blocks * column_blocks, [&](int64_t i) {
      const int64_t r0 = i % row_blocks * rows, n0 = i / row_blocks * columns;
      block(s, at, r0, std::min(s.rows, r0 + rows), n0, std::min(columns, s.n - n0));
    });
  });
}

std::unique_ptr<Kernel> grouped_matmul_backward_cpu(CpuBackend&, const KernelRequest& request) {
  const DType dy_type = request.inputs[0].dtype, x_type = request.inputs[1].dtype;
  const int64_t rows = request.inputs[0].shape[0], n = request.inputs[0].shape[1], k = request.inputs[1].shape[1];
  const int64_t tile = request.attrs.i("tile"), experts = request.attrs.i("experts"), tiles = rows / tile;
  const int64_t row_blocks = up(n, kBlockRows), column_blocks = up(k, 4 * kBlockColumns);
  const double work = static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
  return cpu::make_kernel("grouped_matmul_backward", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto* tile_expert = reinterpret_cast<const int32_t*>(at[2]);
    for_tasks(pool, work, experts * row_blocks * column_blocks, [&](int64_t i) {
      const int64_t e = i / (row_blocks * column_blocks), j0 = i / column_blocks % row_blocks * kBlockRows,
                    i0 = i % column_blocks * 4 * kBlockColumns;
      const int64_t m = std::min(kBlockRows, n - j0), width = std::min(4 * kBlockColumns, k - i0);
      const auto* first = std::find(tile_expert, tile_expert + tiles, static_cast<int32_t>(e));
      const auto* last = std::find_if(first, tile_expert + tiles, [&](int32_t other) { return other != e; });
      const int64_t begin = (first - tile_expert) * tile, count = (last - first) * tile;
      float* dw = reinterpret_cast<float*>(at[3]) + (e * n + j0) * k + i0;
      gemm::Source dy, x;
      dy.data = at[0] + begin * n * static_cast<int64_t>(size_of(dy_type));
      dy.dtype = dy_type;
      dy.row_stride = 1;
      dy.k_stride = n;
      x.data = at[1] + begin * k * static_cast<int64_t>(size_of(x_type));
      x.dtype = x_type;
      x.row_stride = 1;
      x.k_stride = k;
      float* a = gemm::thread_buffer(2, gemm::packed_floats_a(m, gemm::kDepth));
      float* b = gemm::thread_buffer(3, gemm::packed_floats_b(width, gemm::kDepth));
      for (int64_t r = 0; r < count; r += gemm::kDepth) {
        const int64_t some = std::min(gemm::kDepth, count - r);
        gemm::pack_a(dy, j0, m, r, some, {}, a);
        gemm::pack_b(x, i0, width, r, some, b);
        gemm::multiply(m, width, some, a, b, dw, k, r > 0);
      }
      for (int64_t j = 0; count == 0 && j < m; ++j) std::fill_n(dw + j * k, width, 0.0f);
    });
  });
}

}  // namespace hierarchos::ops
