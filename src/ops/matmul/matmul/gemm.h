// Single-threaded blocks of matrix products on the CPU: the parts that products and attention are made of. Everything
// computes in fp32; the instruction set is chosen at run time.
//
// C[m, n] = Σ_k A[m, k]·B[n, k]. Operands are packed into panels of a few rows, k by k, which a register tile reads in
// order. A sum is cut by k alone (kDepth by callers, shorter inside), so that a result has several
// partial sums whatever the tile sizes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hierarchos::gemm {

inline constexpr int64_t kDepth = 256;  // longest k of one multiply(): a panel of B stays in the first-level cache

// A matrix in memory. Element (row, k) is at row·row_stride + k·k_stride, one of which is 1; or, with `offsets`, at
// offsets[row] + k; or, with `k_offsets`, at k_offsets[k] + row. Plain floating types only, unless storage says
// otherwise: then rows are whole blocks of `columns` elements, one after another.
struct Source {
  const std::byte* data = nullptr;
  DType dtype = DType::F32;
  int64_t row_stride = 0, k_stride = 1;
  const int64_t* offsets = nullptr;
  const int64_t* k_offsets = nullptr;
  Storage storage = Storage::Plain;
  int64_t columns = 0;
};

// Factors on A while it is packed: element (row, k) × rows[row·row_step]·scale × columns[k]. Absent ones are null.
struct Prologue {
  const float* rows = nullptr;
  const float* columns = nullptr;
  float scale = 1;
};

int64_t panel_rows_a();  // rows of A that a register tile covers
int64_t panel_rows_b();  // rows of B (columns of C)
int64_t packed_floats_a(int64_t rows, int64_t k);
int64_t packed_floats_b(int64_t rows, int64_t k);

// Packs rows [row, row + rows) and columns [k0, k0 + k) of a source.
void pack_a(const Source& source, int64_t row, int64_t rows, int64_t k0, int64_t k, const Prologue& prologue,
            float* out);
void pack_b(const Source& source, int64_t row, int64_t rows, int64_t k0, int64_t k, float* out);
// C [m, n] from packed operands, written or added to. Rows of C are ldc apart.
void multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int64_t ldc, bool accumulate);

// c[i·ldc + j] (+)= Σ_k x[i·ldx + k] · w[j, k] for few rows of x (fp32) over rows [row, row + rows) of w, whose
// k_stride is 1: reads w once, at the speed of memory.
void multiply_rows(const float* x, int64_t ldx, int64_t m, const Source& w, int64_t row, int64_t rows, int64_t k,
                   float* c, int64_t ldc);

// c[i·ldc + j] += Σ_k x[i·ldx + k] · v[k, j] for few rows of x over the whole rows v.offsets[k] of n elements.
void combine_rows(const float* x, int64_t ldx, int64_t m, const Source& v, int64_t k, int64_t n, float* c, int64_t ldc);

// Columns [k0, k0 + k) of a row of block storage; both are multiples of the block.
void load_blocks(const Source& source, int64_t row, int64_t k0, int64_t k, float* out);

// Elements in order, to and from fp32 (to nearest even).
void load(const std::byte* from, DType dtype, int64_t n, float* to);
void store(const float* from, int64_t n, DType dtype, std::byte* to);

enum class Activation : uint8_t { None, Silu, Gelu, GeluTanh, Relu, Relu2, Tanh, Sigmoid };

// What happens to sums before they are stored. Arrays have room for whole vectors past n (kPad floats), unless n is a
// multiple of kVector.
inline constexpr int64_t kPad = 64, kVector = 16;
struct Epilogue {
  Activation act = Activation::None;
  float softcap = 0;
  bool gate = false;
};
// One row: out[j] becomes softcap(act(sums[j] + bias[j])) or act(sums[j] + bias[j])·(second[j] + bias2[j]), then
// + residual[j]. bias, bias2 and residual may be null; out may be sums or residual; rows are padded as above.
void finish_row(const Epilogue& epilogue, int64_t n, const float* sums, const float* second, const float* bias,
                const float* bias2, const float* residual, float* out);

// Memory of this thread for packed operands and sums, kept from call to call: at least `floats`, aligned to 64 bytes.
// `slot` 0 … 7 are apart.
float* thread_buffer(int slot, int64_t floats);

}  // namespace hierarchos::gemm
