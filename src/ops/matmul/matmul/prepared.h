// Products with weights in the layout of quant/layout.h. Activations are held as whole numbers of 16 bits (or 2 × 16),
// scaled for each 32 columns, so that a product of 32 columns is exact in 32-bit integers, and then scaled and added up
// in fp32. Against fp32 activations that rounds each by at most 2⁻¹⁶ of the largest of its 32 (2⁻³² when exact).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hierarchos::gemm {

// How far a weight is fetched before it is needed, in bytes: the processor's own foresight ends at a page.
inline constexpr int64_t kFetchAhead = 4096;

// Rows of activations, piece of 32 columns by piece. `planes` 2: row 2i holds row i's upper and row 2i + 1 its lower
// bits.
struct QuantizedRows {
  int64_t rows = 0;  // planes included
  int64_t pieces = 0;
  int16_t* values = nullptr;   // [pieces, rows, 32]
  float* scales = nullptr;     // [pieces, rows]
  float* sums = nullptr;       // [pieces, rows]: scale · Σ values
  int32_t* offsets = nullptr;  // [pieces, rows]: what unsigned codes add too much, negated

  static int64_t bytes(int64_t rows, int64_t columns);  // of memory for place()
  void place(std::byte* memory, int64_t row_count, int64_t columns);
};

// `count` rows of x, which become the `planes`·count rows of `out` from planes·first. A row with a value that is not
// finite becomes NaN.
void quantize_rows(const float* x, int64_t ldx, int64_t first, int64_t count, int64_t columns, int planes,
                   Storage storage, const QuantizedRows& out);

// c[i·ldc + j] (j < 16) = Σ over columns of row first + i and of row j of one group of the weight.
void multiply_group(Storage storage, const std::byte* group, const QuantizedRows& x, int64_t first, int64_t count,
                    float* c, int64_t ldc);

// The same for bf16 weights and fp32 rows of x, whose columns past k (to a multiple of 2) are zero.
void multiply_group_bf16(const std::byte* group, const float* x, int64_t ldx, int64_t count, int64_t k, float* c,
                         int64_t ldc);

// Asks for the beginning of a group, so that the first of a run does not wait for memory piece by piece.
void fetch_group(const std::byte* group);

}  // namespace hierarchos::gemm
