#include "ops/sampling/sample/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sampling/sample/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hierarchos::simd {
namespace HWY_NAMESPACE {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

HWY_INLINE int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(F())); }
HWY_INLINE VF Number(VF v) { return hn::IfThenElse(hn::IsNaN(v), Const(kLeast), v); }

void BlockMaxima(const float* x, int64_t n, float* largest) {
  const F d;
  for (int64_t b = 0; b < n / cpu::kScoreBlock; ++b) {
    VF top = Const(kLeast);
    for (int64_t i = 0; i < cpu::kScoreBlock; i += Lanes())
      top = hn::Max(top, Number(hn::LoadU(d, x + b * cpu::kScoreBlock + i)));
    largest[b] = hn::GetLane(hn::MaxOfLanes(d, top));
  }
}

int64_t GatherAtLeast(const float* x, int64_t n, float bound, int32_t first, float* values, int32_t* indices) {
  const F d;
  const I di;
  const VF limit = Const(bound);
  const int64_t w = Lanes();
  int64_t count = 0, i = 0;
  for (; i + w <= n; i += w) {
    const VF v = hn::LoadU(d, x + i);
    const auto mask = hn::Ge(v, limit);
    if (hn::AllFalse(d, mask)) continue;
    // Compressed in a register: processors may compress into memory very slowly.
    hn::StoreU(hn::Compress(v, mask), d, values + count);
    hn::StoreU(hn::Compress(hn::Iota(di, first + static_cast<int32_t>(i)), hn::RebindMask(di, mask)), di,
               indices + count);
    count += static_cast<int64_t>(hn::CountTrue(d, mask));
  }
  for (; i < n; ++i) {
    if (!(x[i] >= bound)) continue;
    values[count] = x[i];
    indices[count++] = first + static_cast<int32_t>(i);
  }
  return count;
}

int64_t CountAtLeast(const float* x, int64_t n, float bound) {
  const F d;
  const int64_t w = Lanes();
  int64_t count = 0, i = 0;
  for (; i + w <= n; i += w) count += static_cast<int64_t>(hn::CountTrue(d, hn::Ge(hn::LoadU(d, x + i), Const(bound))));
  for (; i < n; ++i) count += x[i] >= bound;
  return count;
}

double SumExpScaled(const float* x, float top, float scale, int64_t n) {
  const F d;
  const VF minus = Const(top), times = Const(scale);
  const int64_t w = Lanes();
  const auto term = [&](VF v) { return hn::IfThenZeroElse(hn::IsNaN(v), Exp(hn::Mul(hn::Sub(v, minus), times))); };
  double total = 0;
  int64_t i = 0;
  while (i + w <= n) {
    const int64_t end = std::min(n, i + 64 * w);
    VF a = hn::Zero(d), b = hn::Zero(d);
    for (; i + 2 * w <= end; i += 2 * w) {
      a = hn::Add(a, term(hn::LoadU(d, x + i)));
      b = hn::Add(b, term(hn::LoadU(d, x + i + w)));
    }
    for (; i + w <= end; i += w) a = hn::Add(a, term(hn::LoadU(d, x + i)));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))));
  }
  for (; i < n; ++i)
    if (!std::isnan(x[i])) total += std::exp(static_cast<double>((x[i] - top) * scale));
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::simd {
HWY_EXPORT(BlockMaxima);
HWY_EXPORT(GatherAtLeast);
HWY_EXPORT(CountAtLeast);
HWY_EXPORT(SumExpScaled);
}  // namespace hierarchos::simd

namespace hierarchos::cpu {

void block_maxima(const float* x, int64_t n, float* largest) {
  using namespace simd;
  HWY_DYNAMIC_DISPATCH(BlockMaxima)(x, n, largest);
}
int64_t gather_at_least(const float* x, int64_t n, float bound, int32_t first, float* values, int32_t* indices) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(GatherAtLeast)(x, n, bound, first, values, indices);
}
int64_t count_at_least(const float* x, int64_t n, float bound) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(CountAtLeast)(x, n, bound);
}
double sum_exp_scaled(const float* x, float top, float scale, int64_t n) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(SumExpScaled)(x, top, scale, n);
}

}  // namespace hierarchos::cpu
#endif
