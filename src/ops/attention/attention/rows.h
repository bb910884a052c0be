// Vector code of attention on the CPU: what happens to rows of scores between the products.
#pragma once

#include <cstdint>

namespace hierarchos::attention_rows {

// s ← cap·tanh(s / cap)
void softcap(float* s, int64_t n, float cap);
// One block of an online softmax: replaces scores by exp(s - m') with m' = max(m, max s), adds their sum to the total
// (after its own rescaling), and returns the factor exp(m - m') for what was summed before. A row of -inf leaves
// everything as it is and gives zeros.
float softmax_step(float* s, int64_t n, float* m, float* total);
// p ← exp(p - lse); zeros where lse is -inf.
void exp_of(float* p, int64_t n, float lse);
// dp ← p·(dp - delta)
void dscore(const float* p, float* dp, int64_t n, float delta);
// ds ← ds·(1 - (capped / cap)²)
void softcap_slope(const float* capped, float* ds, int64_t n, float cap);
void scale(float* x, int64_t n, float factor);
float dot(const float* a, const float* b, int64_t n);

}  // namespace hierarchos::attention_rows
