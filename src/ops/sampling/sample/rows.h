// Passes over a row of scores, in vectors. The instruction set is picked at run time. NaN never counts.
#pragma once

#include <cstdint>

namespace hierarchos::cpu {

// largest[b] = the largest of x[64·b … 64·b + 63], for the whole blocks of n; -inf where a block has none.
inline constexpr int64_t kScoreBlock = 64;
void block_maxima(const float* x, int64_t n, float* largest);

// Appends the elements ≥ bound in order, their indices from `first` on; values and indices have room for n and 64 more.
// Returns how many.
int64_t gather_at_least(const float* x, int64_t n, float bound, int32_t first, float* values, int32_t* indices);

// How many elements are ≥ bound.
int64_t count_at_least(const float* x, int64_t n, float bound);

// Σ exp((x - top)·scale), in blocks of fp32 that are added in double.
double sum_exp_scaled(const float* x, float top, float scale, int64_t n);

}  // namespace hierarchos::cpu
