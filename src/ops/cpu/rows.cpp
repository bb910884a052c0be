#include "ops/cpu/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rows.cpp"
#include <hwy/aligned_allocator.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hierarchos::simd {
namespace HWY_NAMESPACE {

HWY_INLINE int64_t Width() { return static_cast<int64_t>(hn::Lanes(F())); }

// The first n < Width() elements, zeros behind them.
HWY_INLINE VF LoadPart(const float* p, int64_t n) {
  HWY_ALIGN float lanes[hn::MaxLanes(F())] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(float));
  return hn::Load(F(), lanes);
}
HWY_INLINE void StorePart(VF v, float* p, int64_t n) {
  HWY_ALIGN float lanes[hn::MaxLanes(F())];
  hn::Store(v, F(), lanes);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(float));
}

// --- conversions

HWY_INLINE void StoreBf16(VF v, uint16_t* p) {
  const hn::RebindToUnsigned<F> du;
  const hn::Rebind<uint16_t, F> d16;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  rounded = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  // All fit 16 bits: the truncation is exact.
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(I(), rounded)), d16, p);
}

void ToFloat(DType dtype, const std::byte* from, float* to, int64_t n) {
  const auto* bits = reinterpret_cast<const uint16_t*>(from);
  const F d;
  int64_t i = 0;
  switch (dtype) {
    case DType::F32: std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::BF16: {
      const hn::Rebind<uint16_t, F> d16;
      const hn::RebindToUnsigned<F> du;
      for (; i + Width() <= n; i += Width())
        hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, bits + i)))), d, to + i);
      for (; i < n; ++i) to[i] = bf16_to_f32(bits[i]);
      return;
    }
    default: {
      const hn::Rebind<hwy::float16_t, F> d16;
      for (; i + Width() <= n; i += Width())
        hn::StoreU(hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(bits) + i)), d, to + i);
      for (; i < n; ++i) to[i] = f16_to_f32(bits[i]);
      return;
    }
  }
}

void FromFloat(DType dtype, const float* from, std::byte* to, int64_t n) {
  auto* bits = reinterpret_cast<uint16_t*>(to);
  int64_t i = 0;
  switch (dtype) {
    case DType::F32: std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::BF16:
      for (; i + Width() <= n; i += Width()) StoreBf16(hn::LoadU(F(), from + i), bits + i);
      for (; i < n; ++i) bits[i] = f32_to_bf16(from[i]);
      return;
    default: {
#if HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR  // whose own conversion does not round to nearest even
      const hn::Rebind<hwy::float16_t, F> d16;
      for (; i + Width() <= n; i += Width())
        hn::StoreU(hn::DemoteTo(d16, hn::LoadU(F(), from + i)), d16, reinterpret_cast<hwy::float16_t*>(bits) + i);
#endif
      for (; i < n; ++i) bits[i] = f32_to_f16(from[i]);
      return;
    }
  }
}

// --- sums

#if HWY_TARGET == HWY_SCALAR
using Wide = hn::Rebind<double, F>;
HWY_INLINE hn::Vec<Wide> Widen(VF v) { return hn::PromoteTo(Wide(), v); }
#else
using Half = hn::Half<F>;
using Wide = hn::Rebind<double, Half>;
HWY_INLINE hn::Vec<Wide> Widen(VF v) {
  const Half dh;
  const Wide dd;
  return hn::Add(hn::PromoteTo(dd, hn::LowerHalf(dh, v)), hn::PromoteTo(dd, hn::UpperHalf(dh, v)));
}
#endif

// Σ term(p[0][i], p[1][i], …) over i < n.
template <size_t N, class Term>
HWY_INLINE double Accumulate(const std::array<const float*, N>& p, int64_t n, const Term& term) {
  const F d;
  const Wide dd;
  const int64_t w = Width(), block = 64 * w;
  const auto at = [&](int64_t i) {
    if constexpr (N == 1) return term(hn::LoadU(d, p[0] + i));
    if constexpr (N == 2) return term(hn::LoadU(d, p[0] + i), hn::LoadU(d, p[1] + i));
    if constexpr (N == 3) return term(hn::LoadU(d, p[0] + i), hn::LoadU(d, p[1] + i), hn::LoadU(d, p[2] + i));
  };
  auto total = hn::Zero(dd);
  int64_t i = 0;
  while (i + w <= n) {
    const int64_t end = std::min(n, i + block);
    VF s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    for (; i + 4 * w <= end; i += 4 * w) {
      s0 = hn::Add(s0, at(i));
      s1 = hn::Add(s1, at(i + w));
      s2 = hn::Add(s2, at(i + 2 * w));
      s3 = hn::Add(s3, at(i + 3 * w));
    }
    for (; i + w <= end; i += w) s0 = hn::Add(s0, at(i));
    total = hn::Add(total, Widen(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  if (i < n) {
    VF part = hn::Zero(d);
    if constexpr (N == 1) part = term(LoadPart(p[0] + i, n - i));
    if constexpr (N == 2) part = term(LoadPart(p[0] + i, n - i), LoadPart(p[1] + i, n - i));
    if constexpr (N == 3) part = term(LoadPart(p[0] + i, n - i), LoadPart(p[1] + i, n - i), LoadPart(p[2] + i, n - i));
    part = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), part);
    total = hn::Add(total, Widen(part));
  }
  return hn::GetLane(hn::SumOfLanes(dd, total));
}

double Sum(const float* x, int64_t n) {
  return Accumulate<1>({x}, n, [](VF a) { return a; });
}
double Dot(const float* x, const float* y, int64_t n) {
  return Accumulate<2>({x, y}, n, [](VF a, VF b) { return hn::Mul(a, b); });
}
double Dot3(const float* x, const float* y, const float* z, int64_t n) {
  return Accumulate<3>({x, y, z}, n, [](VF a, VF b, VF c) { return hn::Mul(hn::Mul(a, b), c); });
}
double SumSquaredDifference(const float* x, float from, int64_t n) {
  const VF f = Const(from);
  return Accumulate<1>({x}, n, [f](VF a) {
    const VF e = hn::Sub(a, f);
    return hn::Mul(e, e);
  });
}
double SumExp(const float* x, float minus, int64_t n) {
  const VF m = Const(minus);
  return Accumulate<1>({x}, n, [m](VF a) { return Exp(hn::Sub(a, m)); });
}

HWY_INLINE VF MaxNaN(VF a, VF b) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, hn::Max(a, b)));
}

float Max(const float* x, int64_t n) {
  const F d;
  const int64_t w = Width();
  VF largest = Const(-HUGE_VALF), nan = hn::Zero(d);
  int64_t i = 0;
  for (; i + w <= n; i += w) {
    const VF v = hn::LoadU(d, x + i);
    largest = hn::Max(largest, v);
    nan = hn::IfThenElse(hn::IsNaN(v), v, nan);
  }
  if (i < n) {
    VF v = LoadPart(x + i, n - i);
    v = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n - i)), v, Const(-HUGE_VALF));
    largest = hn::Max(largest, v);
    nan = hn::IfThenElse(hn::IsNaN(v), v, nan);
  }
  if (!hn::AllFalse(d, hn::IsNaN(nan))) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

int64_t ArgMax(const float* x, int64_t n) {
  // The largest number first, then the first place where it stands; NaN compares false in both passes.
  const F d;
  const int64_t w = Width();
  const VF lowest = Const(-HUGE_VALF);
  VF largest = lowest;
  int64_t i = 0;
  for (; i + w <= n; i += w) {
    const VF v = hn::LoadU(d, x + i);
    largest = hn::IfThenElse(hn::Gt(v, largest), v, largest);
  }
  float best = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  const VF wanted = Const(best);
  for (i = 0; i + w <= n; i += w) {
    const intptr_t found = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), wanted));
    if (found >= 0) return i + found;
  }
  for (; i < n; ++i)
    if (x[i] == best) return i;
  return 0;  // all are NaN
}

// --- rows in, rows out

// body(i, load, store) for each vector of n elements; load and store know of the short last one.
template <class Body>
HWY_INLINE void ForVectors(int64_t n, const Body& body) {
  const F d;
  const int64_t w = Width();
  int64_t i = 0;
  for (; i + w <= n; i += w)
    body([&](const float* p) { return hn::LoadU(d, p + i); }, [&](VF v, float* p) { hn::StoreU(v, d, p + i); });
  if (i < n)
    body([&](const float* p) { return LoadPart(p + i, n - i); }, [&](VF v, float* p) { StorePart(v, p + i, n - i); });
}

void AddTo(double* sums, const float* x, int64_t n) {
  const Wide dd;
  const hn::Rebind<float, Wide> df;
  const auto w = static_cast<int64_t>(hn::Lanes(dd));
  int64_t i = 0;
  for (; i + w <= n; i += w)
    hn::StoreU(hn::Add(hn::LoadU(dd, sums + i), hn::PromoteTo(dd, hn::LoadU(df, x + i))), dd, sums + i);
  for (; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

void MaxTo(float* largest, const float* x, int64_t n) {
  ForVectors(n, [&](auto load, auto store) { store(MaxNaN(load(largest), load(x)), largest); });
}

void ScaleRow(const float* x, float scale, const float* weight, float offset, float* y, int64_t n) {
  const VF s = Const(scale), o = Const(offset);
  if (weight)
    ForVectors(n, [&](auto load, auto store) { store(hn::Mul(hn::Mul(load(x), s), hn::Add(load(weight), o)), y); });
  else
    ForVectors(n, [&](auto load, auto store) { store(hn::Mul(load(x), s), y); });
}

void NormaliseRow(const float* x, float mean, float rstd, const float* weight, const float* bias, float* y, int64_t n) {
  const VF m = Const(mean), r = Const(rstd);
  ForVectors(n, [&](auto load, auto store) {
    VF v = hn::Mul(hn::Sub(load(x), m), r);
    if (weight) v = hn::Mul(v, load(weight));
    if (bias) v = hn::Add(v, load(bias));
    store(v, y);
  });
}

void NormGradientRow(const float* g, const float* weight, float offset, const float* x, float a, float b, float c, float* y,
                     int64_t n) {
  const VF va = Const(a), vb = Const(b), vc = Const(c), o = Const(offset);
  ForVectors(n, [&](auto load, auto store) {
    VF v = load(g);
    if (weight) v = hn::Mul(v, hn::Add(load(weight), o));
    store(hn::Add(hn::MulAdd(v, va, hn::Mul(load(x), vb)), vc), y);
  });
}

void ExpRow(const float* x, float minus, float scale, float* y, int64_t n) {
  const VF m = Const(minus), s = Const(scale);
  ForVectors(n, [&](auto load, auto store) { store(hn::Mul(Exp(hn::Sub(load(x), m)), s), y); });
}

void AdamWRows(const cpu::AdamWScalars& s, float* param, const float* grad, float* first, float* second, int64_t n) {
  const VF decay = Const(s.decay), beta1 = Const(s.beta1), rest1 = Const(s.rest1), beta2 = Const(s.beta2),
           rest2 = Const(s.rest2), step = Const(s.step), root = Const(s.root_correction), eps = Const(s.eps),
           scale = Const(s.grad_scale);
  ForVectors(n, [&](auto load, auto store) {
    const VF g = hn::Mul(load(grad), scale);
    const VF m = hn::MulAdd(beta1, load(first), hn::Mul(rest1, g));
    const VF v = hn::MulAdd(beta2, load(second), hn::Mul(hn::Mul(rest2, g), g));
    const VF denominator = hn::Add(hn::Div(hn::Sqrt(v), root), eps);
    store(m, first);
    store(v, second);
    store(hn::Sub(hn::Mul(load(param), decay), hn::Div(hn::Mul(step, m), denominator)), param);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::simd {
HWY_EXPORT(ToFloat);
HWY_EXPORT(FromFloat);
HWY_EXPORT(Sum);
HWY_EXPORT(Dot);
HWY_EXPORT(Dot3);
HWY_EXPORT(SumSquaredDifference);
HWY_EXPORT(SumExp);
HWY_EXPORT(Max);
HWY_EXPORT(ArgMax);
HWY_EXPORT(AddTo);
HWY_EXPORT(MaxTo);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(NormaliseRow);
HWY_EXPORT(NormGradientRow);
HWY_EXPORT(ExpRow);
HWY_EXPORT(AdamWRows);

}  // namespace hierarchos::simd

#define DISPATCH HWY_DYNAMIC_DISPATCH

namespace hierarchos::cpu {

using namespace hierarchos::simd;

void to_float(DType dtype, const std::byte* from, float* to, int64_t n) { DISPATCH(ToFloat)(dtype, from, to, n); }
void from_float(DType dtype, const float* from, std::byte* to, int64_t n) { DISPATCH(FromFloat)(dtype, from, to, n); }
double sum(const float* x, int64_t n) { return DISPATCH(Sum)(x, n); }
double dot(const float* x, const float* y, int64_t n) { return DISPATCH(Dot)(x, y, n); }
double dot3(const float* x, const float* y, const float* z, int64_t n) { return DISPATCH(Dot3)(x, y, z, n); }
double sum_squared_difference(const float* x, float from, int64_t n) { return DISPATCH(SumSquaredDifference)(x, from, n); }
double sum_exp(const float* x, float minus, int64_t n) { return DISPATCH(SumExp)(x, minus, n); }
float max(const float* x, int64_t n) { return DISPATCH(Max)(x, n); }
int64_t argmax(const float* x, int64_t n) { return DISPATCH(ArgMax)(x, n); }
void add_to(double* sums, const float* x, int64_t n) { DISPATCH(AddTo)(sums, x, n); }
void max_to(float* largest, const float* x, int64_t n) { DISPATCH(MaxTo)(largest, x, n); }
void scale_row(const float* x, float scale, const float* weight, float offset, float* y, int64_t n) {
  DISPATCH(ScaleRow)(x, scale, weight, offset, y, n);
}
void normalise_row(const float* x, float mean, float rstd, const float* weight, const float* bias, float* y, int64_t n) {
  DISPATCH(NormaliseRow)(x, mean, rstd, weight, bias, y, n);
}
void norm_gradient_row(const float* g, const float* weight, float offset, const float* x, float a, float b, float c, float* y,
                       int64_t n) {
  DISPATCH(NormGradientRow)(g, weight, offset, x, a, b, c, y, n);
}
void exp_row(const float* x, float minus, float scale, float* y, int64_t n) { DISPATCH(ExpRow)(x, minus, scale, y, n); }
void adamw_rows(const AdamWScalars& s, float* param, const float* grad, float* m, float* v, int64_t n) {
  DISPATCH(AdamWRows)(s, param, grad, m, v, n);
}

#undef DISPATCH

float* thread_buffer(int slot, int64_t floats) {
  struct Slot {
    hwy::AlignedFreeUniquePtr<float[]> memory;
    int64_t size = 0;
  };
  thread_local std::array<Slot, 8> slots;
  Slot& s = slots.at(static_cast<size_t>(slot));
  if (s.size < floats) {
    s.memory = hwy::AllocateAligned<float>(static_cast<size_t>(floats));
    s.size = floats;
  }
  return s.memory.get();
}

}  // namespace hierarchos::cpu
#endif
