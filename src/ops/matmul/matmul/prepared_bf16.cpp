#include "ops/matmul/matmul/prepared_bf16.h"

#include <cstring>

#include "base/error.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define HIERARCHOS_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace hierarchos::gemm {
namespace {

// kRows sums in registers; a word of the weight serves all of them.
template <int kRows>
HIERARCHOS_BF16 void rows_of_group(const std::byte* group, const uint16_t* x, int64_t ldx, int64_t k, float* c,
                                   int64_t ldc) {
  __m512 sums[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  for (int64_t i = 0; i < k; i += 2, group += 64) {
    const __m512i w = _mm512_loadu_si512(group);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      std::memcpy(&pair, x + r * ldx + i, sizeof(pair));
      sums[r] =
          _mm512_dpbf16_ps(sums[r], reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)));
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(c + r * ldc, sums[r]);
}

}  // namespace

bool has_bf16_pairs() {
  static const bool has =
      __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return has;
}

void multiply_group_pairs(const std::byte* group, const uint16_t* x, int64_t ldx, int64_t count, int64_t k, float* c,
                          int64_t ldc) {
  for (; count >= 16; count -= 16, x += 16 * ldx, c += 16 * ldc) rows_of_group<16>(group, x, ldx, k, c, ldc);
  for (; count >= 4; count -= 4, x += 4 * ldx, c += 4 * ldc) rows_of_group<4>(group, x, ldx, k, c, ldc);
  for (; count >= 1; count -= 1, x += ldx, c += ldc) rows_of_group<1>(group, x, ldx, k, c, ldc);
}

}  // namespace hierarchos::gemm

#else

namespace hierarchos::gemm {

bool has_bf16_pairs() { return false; }

void multiply_group_pairs(const std::byte*, const uint16_t*, int64_t, int64_t, int64_t, float*, int64_t) {
  throw UnsupportedError("this processor has no products of bf16 pairs");
}

}  // namespace hierarchos::gemm

#endif
