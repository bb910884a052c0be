// Products of bf16 activations with bf16 weights in the layout of quant/layout.h, on processors that have an
// instruction for pairs of bf16 (AVX-512 BF16): twice the rate of fp32. Sums are fp32; subnormal inputs count as zero
// there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hierarchos::gemm {

bool has_bf16_pairs();  // whether this processor has it; multiply_group_pairs() must not be called otherwise

// c[i·ldc + j] (j < 16) for `count` rows of x; k is a multiple of 2.
void multiply_group_pairs(const std::byte* group, const uint16_t* x, int64_t ldx, int64_t count, int64_t k, float* c,
                          int64_t ldc);

}  // namespace hierarchos::gemm
