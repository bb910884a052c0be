// Rows of numbers on the CPU: conversions to and from fp32, and sums over them. Each picks the instruction set at run
// time. Sums run in blocks of fp32 that are added in double precision, always in the same order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hierarchos::cpu {

// n elements of a floating type to fp32 and back (to nearest even). Memory must not overlap.
void to_float(DType dtype, const std::byte* from, float* to, int64_t n);
void from_float(DType dtype, const float* from, std::byte* to, int64_t n);

// The row itself if it is fp32, else its conversion in `buffer`.
inline const float* as_float(DType dtype, const std::byte* row, float* buffer, int64_t n) {
  if (dtype == DType::F32) return reinterpret_cast<const float*>(row);
  to_float(dtype, row, buffer, n);
  return buffer;
}

double sum(const float* x, int64_t n);
double dot(const float* x, const float* y, int64_t n);
double dot3(const float* x, const float* y, const float* z, int64_t n);  // Σ x·y·z
double sum_squared_difference(const float* x, float from, int64_t n);    // Σ (x - from)²
float max(const float* x, int64_t n);                                    // NaN if there is one; -inf of nothing
double sum_exp(const float* x, float minus, int64_t n);                  // Σ exp(x - minus)
int64_t argmax(const float* x, int64_t n);                               // first of the largest, NaN never, 0 if all are

// sums[i] += x[i], in double
void add_to(double* sums, const float* x, int64_t n);
// largest[i] = max(largest[i], x[i]), NaN if either is
void max_to(float* largest, const float* x, int64_t n);

// y = x · scale · (weight + offset), weight may be null
void scale_row(const float* x, float scale, const float* weight, float offset, float* y, int64_t n);
// y = (x - mean) · rstd · weight + bias, weight and bias may be null
void normalise_row(const float* x, float mean, float rstd, const float* weight, const float* bias, float* y, int64_t n);
// y = a·g·(weight + offset) + b·x + c, weight may be null
void norm_gradient_row(const float* g, const float* weight, float offset, const float* x, float a, float b, float c, float* y,
                       int64_t n);
// y = exp(x - minus) · scale
void exp_row(const float* x, float minus, float scale, float* y, int64_t n);

struct AdamWScalars {
  float decay;          // 1 - lr · weight_decay
  float beta1, rest1;   // rest = 1 - beta
  float beta2, rest2;
  float step;           // lr / (1 - β1ᵗ)
  float root_correction;  // √(1 - β2ᵗ)
  float eps;
  float grad_scale;
};
void adamw_rows(const AdamWScalars& s, float* param, const float* grad, float* m, float* v, int64_t n);

// Working memory of the calling thread, at least `floats` of them, aligned for vectors. Lives until the next call with
// the same slot.
float* thread_buffer(int slot, int64_t floats);

}  // namespace hierarchos::cpu
