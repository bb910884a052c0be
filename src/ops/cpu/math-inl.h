// Elementary functions on vectors of floats, a few ulp from the true value, with the edge cases of <cmath>: NaN passes
// through, infinities and overflow behave, subnormal results are kept.
//
// Included once for each instruction set (see hwy/foreach_target.h).
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>

#if defined(HIERARCHOS_OPS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HIERARCHOS_OPS_CPU_MATH_INL_H_
#undef HIERARCHOS_OPS_CPU_MATH_INL_H_
#else
#define HIERARCHOS_OPS_CPU_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace hierarchos::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using VF = hn::Vec<F>;
using VI = hn::Vec<I>;

HWY_INLINE VF Const(float v) { return hn::Set(F(), v); }

HWY_INLINE VF Exp(VF x) {
  const F d;
  // Within these bounds Highway's is 1 ulp; beyond them the result is 0 or infinite all the same.
  const VF y = hn::Exp(d, hn::Min(hn::Max(x, Const(-104.0f)), Const(89.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// N. Juffa's minimax approximation on [2/3, 4/3]: below 1 ulp.
HWY_INLINE VF Log(VF x) {
  const F d;
  const I di;
  const auto tiny = hn::Lt(x, Const(0x1p-126f));
  const VF a = hn::IfThenElse(tiny, hn::Mul(x, Const(0x1p23f)), x);
  const VI e = hn::And(hn::Sub(hn::BitCast(di, a), hn::Set(di, 0x3f2aaaab)), hn::Set(di, static_cast<int32_t>(0xff800000)));
  const VF m = hn::Sub(hn::BitCast(d, hn::Sub(hn::BitCast(di, a), e)), Const(1.0f));
  const VF exponent = hn::Add(hn::ConvertTo(d, hn::ShiftRight<23>(e)), hn::IfThenElse(tiny, Const(-23.0f), hn::Zero(d)));
  const VF s = hn::Mul(m, m);
  VF r = Const(-0.130310059f), t = Const(0.140869141f);
  r = hn::MulAdd(r, s, Const(-0.121483512f));
  t = hn::MulAdd(t, s, Const(0.139814854f));
  r = hn::MulAdd(r, s, Const(-0.166846126f));
  t = hn::MulAdd(t, s, Const(0.200120345f));
  r = hn::MulAdd(r, s, Const(-0.249996200f));
  r = hn::MulAdd(t, m, r);
  r = hn::MulAdd(r, m, Const(0.333331972f));
  r = hn::MulAdd(r, m, Const(-0.5f));
  r = hn::MulAdd(r, s, m);
  r = hn::MulAdd(exponent, Const(0.693147182f), r);
  r = hn::IfThenElse(hn::Lt(x, Const(HUGE_VALF)), r, x);  // +inf and NaN pass
  r = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), Const(-HUGE_VALF), r);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), Const(NAN), r);
}

// For x ≥ 0.
HWY_INLINE VF Log1p(VF x) {
  const VF y = hn::Add(x, Const(1.0f));
  const auto small = hn::Eq(y, Const(1.0f));
  const VF divisor = hn::Sub(hn::IfThenElse(small, Const(2.0f), y), Const(1.0f));
  const VF result = hn::Mul(Log(y), hn::Div(x, divisor));
  return hn::IfThenElse(small, x, result);
}

HWY_INLINE VF Tanh(VF x) {
  const VF a = hn::Abs(x);
  const VF s = hn::Mul(x, x);
  VF r = Const(1.57394409e-2f);
  r = hn::MulAdd(r, s, Const(-5.23025580e-2f));
  r = hn::MulAdd(r, s, Const(1.33152470e-1f));
  r = hn::MulAdd(r, s, Const(-3.33327681e-1f));
  const VF near = hn::MulAdd(hn::Mul(r, s), x, x);
  const VF e = Exp(hn::Add(a, a));
  const VF far = hn::Sub(Const(1.0f), hn::Div(Const(2.0f), hn::Add(e, Const(1.0f))));
  const VF y = hn::IfThenElse(hn::Lt(a, Const(0.599609375f)), near, hn::CopySignToAbs(far, x));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// N. Juffa's: below 1 ulp.
HWY_INLINE VF Erf(VF x) {
  const VF t = hn::Abs(x), s = hn::Mul(x, x);
  // The result is 1 long before s overflows; the sums must not become inf - inf on the way.
  const VF tb = hn::Min(t, Const(10.0f)), sb = hn::Min(s, Const(100.0f));
  VF r = hn::MulAdd(hn::MulAdd(Const(-1.72853470e-5f), tb, Const(3.83197126e-4f)), sb,
                    hn::MulAdd(Const(-3.88396438e-3f), tb, Const(2.42546219e-2f)));
  r = hn::MulAdd(r, tb, Const(-1.06777877e-1f));
  r = hn::MulAdd(r, tb, Const(-6.34846687e-1f));
  r = hn::MulAdd(r, tb, Const(-1.28717512e-1f));
  r = hn::MulAdd(r, tb, hn::Neg(tb));
  const VF far = hn::CopySignToAbs(hn::Sub(Const(1.0f), Exp(r)), x);
  VF q = Const(-5.96761703e-4f);
  q = hn::MulAdd(q, s, Const(4.99119423e-3f));
  q = hn::MulAdd(q, s, Const(-2.67681349e-2f));
  q = hn::MulAdd(q, s, Const(1.12819925e-1f));
  q = hn::MulAdd(q, s, Const(-3.76125336e-1f));
  q = hn::MulAdd(q, s, Const(1.28379166e-1f));
  const VF near = hn::MulAdd(q, x, x);
  const VF y = hn::IfThenElse(hn::Gt(t, Const(0.927734375f)), far, near);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

HWY_INLINE VF Sigmoid(VF x) { return hn::Div(Const(1.0f), hn::Add(Const(1.0f), Exp(hn::Neg(x)))); }
HWY_INLINE VF Silu(VF x) { return hn::Div(x, hn::Add(Const(1.0f), Exp(hn::Neg(x)))); }

HWY_INLINE VF Gelu(VF x) {
  const VF half = hn::Mul(Const(0.5f), x);
  return hn::Mul(half, hn::Add(Const(1.0f), Erf(hn::Mul(x, Const(0.70710678118654752f)))));
}

HWY_INLINE VF GeluTanh(VF x) {
  const VF cube = hn::Mul(hn::Mul(x, x), x);
  const VF inner = hn::Mul(Const(0.79788456080286536f), hn::Add(x, hn::Mul(Const(0.044715f), cube)));
  return hn::Mul(hn::Mul(Const(0.5f), x), hn::Add(Const(1.0f), Tanh(inner)));
}

HWY_INLINE VF Softplus(VF x) {
  const VF y = Log1p(Exp(hn::Min(x, Const(21.0f))));
  return hn::IfThenElse(hn::Or(hn::Gt(x, Const(20.0f)), hn::IsNaN(x)), x, y);
}

// Highway's reduction is good for |x| < 39000: the rare lane beyond takes the scalar way.
template <class Vector, class Scalar>
HWY_INLINE VF Circular(VF x, Vector vector, Scalar scalar) {
  const F d;
  const auto inside = hn::Lt(hn::Abs(x), Const(39000.0f));
  if (HWY_LIKELY(hn::AllTrue(d, inside))) return vector(d, x);
  HWY_ALIGN float lane[hn::MaxLanes(d)];
  hn::Store(x, d, lane);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lane[i] = static_cast<float>(scalar(static_cast<double>(lane[i])));
  return hn::Load(d, lane);
}

HWY_INLINE VF Sin(VF x) {
  return Circular(x, [](F d, VF v) { return hn::Sin(d, v); }, [](double v) { return std::sin(v); });
}
HWY_INLINE VF Cos(VF x) {
  return Circular(x, [](F d, VF v) { return hn::Cos(d, v); }, [](double v) { return std::cos(v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::simd
HWY_AFTER_NAMESPACE();

#endif
