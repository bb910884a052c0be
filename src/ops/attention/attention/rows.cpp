#include "ops/attention/attention/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention/rows.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hierarchos::attention_rows {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// NaN stays NaN, which the library's functions do not promise.
HWY_INLINE V KeepNan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }
HWY_INLINE V Exp(D d, V x) { return KeepNan(x, hn::Exp(d, x)); }

// The last, partial vector of a row goes through a buffer filled with `fill`.
struct Tail {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  V load(D d, const float* from, int64_t count, float fill) {
    std::fill_n(lanes, hn::Lanes(d), fill);
    std::copy_n(from, count, lanes);
    return hn::Load(d, lanes);
  }
  void store(D d, V v, float* to, int64_t count) {
    hn::Store(v, d, lanes);
    std::copy_n(lanes, count, to);
  }
};

void Softcap(float* s, int64_t n, float cap) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V c = hn::Set(d, cap), inverse = hn::Set(d, 1 / cap);
  Tail tail;
  for (int64_t i = 0; i < n; i += lanes) {
    const bool whole = i + lanes <= n;
    V x = hn::Mul(whole ? hn::LoadU(d, s + i) : tail.load(d, s + i, n - i, 0), inverse);
    x = hn::Mul(c, KeepNan(x, hn::Tanh(d, x)));
    if (whole)
      hn::StoreU(x, d, s + i);
    else
      tail.store(d, x, s + i, n - i);
  }
}

float SoftmaxStep(float* s, int64_t n, float* m, float* total) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Tail tail;
  V highest = hn::Set(d, -kInf);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) highest = hn::Max(highest, hn::LoadU(d, s + i));
  if (i < n) highest = hn::Max(highest, tail.load(d, s + i, n - i, -kInf));
  const float before = *m, now = std::max(before, hn::GetLane(hn::MaxOfLanes(d, highest)));
  if (now == -kInf) {
    std::fill_n(s, n, 0.0f);
    return 1;
  }
  const V shift = hn::Set(d, now);
  V sum = hn::Zero(d);
  for (i = 0; i + lanes <= n; i += lanes) {
    const V p = Exp(d, hn::Sub(hn::LoadU(d, s + i), shift));
    sum = hn::Add(sum, p);
    hn::StoreU(p, d, s + i);
  }
  if (i < n) {
    const V p = Exp(d, hn::Sub(tail.load(d, s + i, n - i, -kInf), shift));
    sum = hn::Add(sum, p);
    tail.store(d, p, s + i, n - i);
  }
  const float factor = before == -kInf ? 0.0f : std::exp(before - now);
  *m = now;
  *total = *total * factor + hn::GetLane(hn::SumOfLanes(d, sum));
  return factor;
}

void ExpOf(float* p, int64_t n, float lse) {
  if (lse == -std::numeric_limits<float>::infinity()) {
    std::fill_n(p, n, 0.0f);
    return;
  }
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V shift = hn::Set(d, lse);
  Tail tail;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Exp(d, hn::Sub(hn::LoadU(d, p + i), shift)), d, p + i);
  if (i < n) tail.store(d, Exp(d, hn::Sub(tail.load(d, p + i, n - i, 0), shift)), p + i, n - i);
}

void Dscore(const float* p, float* dp, int64_t n, float delta) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V shift = hn::Set(d, delta);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, p + i), hn::Sub(hn::LoadU(d, dp + i), shift)), d, dp + i);
  for (; i < n; ++i) dp[i] = p[i] * (dp[i] - delta);
}

void SoftcapSlope(const float* capped, float* ds, int64_t n, float cap) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V one = hn::Set(d, 1.0f), inverse = hn::Set(d, 1 / cap);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V t = hn::Mul(hn::LoadU(d, capped + i), inverse);
    hn::StoreU(hn::Mul(hn::LoadU(d, ds + i), hn::Mul(hn::Sub(one, t), hn::Add(one, t))), d, ds + i);
  }
  for (; i < n; ++i) {
    const float t = capped[i] / cap;
    ds[i] *= (1 - t) * (1 + t);
  }
}

void Scale(float* x, int64_t n, float factor) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, x + i);
  for (; i < n; ++i) x[i] *= factor;
}

float Dot(const float* a, const float* b, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::attention_rows
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::attention_rows {

HWY_EXPORT(Softcap);
HWY_EXPORT(SoftmaxStep);
HWY_EXPORT(ExpOf);
HWY_EXPORT(Dscore);
HWY_EXPORT(SoftcapSlope);
HWY_EXPORT(Scale);
HWY_EXPORT(Dot);

void softcap(float* s, int64_t n, float cap) { HWY_DYNAMIC_DISPATCH(Softcap)(s, n, cap); }
float softmax_step(float* s, int64_t n, float* m, float* total) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxStep)(s, n, m, total);
}
void exp_of(float* p, int64_t n, float lse) { HWY_DYNAMIC_DISPATCH(ExpOf)(p, n, lse); }
void dscore(const float* p, float* dp, int64_t n, float delta) { HWY_DYNAMIC_DISPATCH(Dscore)(p, dp, n, delta); }
void softcap_slope(const float* capped, float* ds, int64_t n, float cap) {
  HWY_DYNAMIC_DISPATCH(SoftcapSlope)(capped, ds, n, cap);
}
void scale(float* x, int64_t n, float factor) { HWY_DYNAMIC_DISPATCH(Scale)(x, n, factor); }
float dot(const float* a, const float* b, int64_t n) { return HWY_DYNAMIC_DISPATCH(Dot)(a, b, n); }

}  // namespace hierarchos::attention_rows
#endif
