#include "ops/scan/linear_scan/steps.h"

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scan/linear_scan/steps.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hierarchos::scan_steps {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

int64_t LanesOf() { return static_cast<int64_t>(hn::Lanes(D())); }

void Exponentials(const float* log_decay, int64_t n, float* decay) {
  const D d;
  const int64_t step = LanesOf();
  for (int64_t i = 0; i < n; i += step) {
    const V x = hn::LoadU(d, log_decay + i);
    hn::StoreU(hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x)), d, decay + i);
  }
}

// kN vectors of rows. S·u is summed in two parts, to hide the latency of the additions.
template <int kN, bool kUw>
HWY_INLINE void ForwardRows(const Token& token, int64_t keys, int64_t stride, float* HWY_RESTRICT state, const float* v,
                            float* y) {
  const D d;
  const int64_t step = LanesOf();
  V su[kN], even[kN], odd[kN];
#pragma GCC unroll 4
  for (int n = 0; n < kN; ++n) su[n] = even[n] = odd[n] = hn::Zero(d);
  if (kUw) {
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2) {
      const V u0 = hn::Set(d, token.u[j]), u1 = hn::Set(d, token.u[j + 1]);
#pragma GCC unroll 4
      for (int n = 0; n < kN; ++n) {
        even[n] = hn::MulAdd(hn::LoadU(d, state + j * stride + n * step), u0, even[n]);
        odd[n] = hn::MulAdd(hn::LoadU(d, state + (j + 1) * stride + n * step), u1, odd[n]);
      }
    }
    if (j < keys) {
      const V u0 = hn::Set(d, token.u[j]);
#pragma GCC unroll 4
      for (int n = 0; n < kN; ++n) even[n] = hn::MulAdd(hn::LoadU(d, state + j * stride + n * step), u0, even[n]);
    }
#pragma GCC unroll 4
    for (int n = 0; n < kN; ++n) {
      su[n] = hn::Add(even[n], odd[n]);
      even[n] = odd[n] = hn::Zero(d);
    }
  }
  V vv[kN];
#pragma GCC unroll 4
  for (int n = 0; n < kN; ++n) vv[n] = hn::LoadU(d, v + n * step);
  for (int64_t j = 0; j < keys; ++j) {
    const V decay = hn::Set(d, token.decay[j]), k = hn::Set(d, token.k[j]), r = hn::Set(d, token.r[j]);
    float* at = state + j * stride;
#pragma GCC unroll 4
    for (int n = 0; n < kN; ++n) {
      V s = hn::MulAdd(vv[n], k, hn::Mul(hn::LoadU(d, at + n * step), decay));
      if (kUw) s = hn::MulAdd(su[n], hn::Set(d, token.w[j]), s);
      hn::StoreU(s, d, at + n * step);
      even[n] = hn::MulAdd(s, r, even[n]);
    }
  }
#pragma GCC unroll 4
  for (int n = 0; n < kN; ++n) hn::StoreU(even[n], d, y + n * step);
}

template <bool kUw>
void ForwardAll(const Token& token, int64_t keys, int64_t rows, float* state, const float* v, float* y) {
  const int64_t step = LanesOf();
  int64_t i = 0;
  for (; i + 4 * step <= rows; i += 4 * step) ForwardRows<4, kUw>(token, keys, rows, state + i, v + i, y + i);
  for (; i + 2 * step <= rows; i += 2 * step) ForwardRows<2, kUw>(token, keys, rows, state + i, v + i, y + i);
  for (; i < rows; i += step) ForwardRows<1, kUw>(token, keys, rows, state + i, v + i, y + i);
}

void Forward(const Token& token, int64_t keys, int64_t rows, float* state, const float* v, float* y) {
  if (token.u)
    ForwardAll<true>(token, keys, rows, state, v, y);
  else
    ForwardAll<false>(token, keys, rows, state, v, y);
}

template <bool kUw>
void AdvanceAll(const Token& token, int64_t values, int64_t width, const float* HWY_RESTRICT before, const float* v,
                float* HWY_RESTRICT after) {
  const D d;
  const int64_t step = LanesOf();
  for (int64_t i = 0; i < values; ++i, before += width, after += width) {
    V su = hn::Zero(d);
    if (kUw) {
      for (int64_t j = 0; j < width; j += step)
        su = hn::MulAdd(hn::LoadU(d, before + j), hn::LoadU(d, token.u + j), su);
      su = hn::SumOfLanes(d, su);
    }
    const V vi = hn::Set(d, v[i]);
    for (int64_t j = 0; j < width; j += step) {
      V s = hn::MulAdd(vi, hn::LoadU(d, token.k + j), hn::Mul(hn::LoadU(d, before + j), hn::LoadU(d, token.decay + j)));
      if (kUw) s = hn::MulAdd(su, hn::LoadU(d, token.w + j), s);
      hn::StoreU(s, d, after + j);
    }
  }
}

// Two rows of S at a time, so that the gradients of the token are read and written half as often.
template <bool kUw, int kRows>
HWY_INLINE void BackwardRows(const Token& token, int64_t width, const float* HWY_RESTRICT before,
                             const float* HWY_RESTRICT after, const float* v, const float* dy, float* HWY_RESTRICT g,
                             const TokenGrads& grads, int64_t i) {
  const D d;
  const int64_t step = LanesOf();
  V dv[kRows], su[kRows], gw[kRows], vi[kRows], dyi[kRows];
#pragma GCC unroll 4
  for (int n = 0; n < kRows; ++n) {
    dv[n] = su[n] = gw[n] = hn::Zero(d);
    vi[n] = hn::Set(d, v[i + n]);
    dyi[n] = hn::Set(d, dy[i + n]);
  }
  before += i * width;
  after += i * width;
  g += i * width;
  for (int64_t j = 0; j < width; j += step) {
    const V r = hn::LoadU(d, token.r + j), k = hn::LoadU(d, token.k + j), decay = hn::LoadU(d, token.decay + j);
    V dr = hn::LoadU(d, grads.r + j), dk = hn::LoadU(d, grads.k + j), dl = hn::Zero(d);
#pragma GCC unroll 4
    for (int n = 0; n < kRows; ++n) {
      const V sb = hn::LoadU(d, before + n * width + j);
      const V gi = hn::MulAdd(dyi[n], r, hn::LoadU(d, g + n * width + j));
      dr = hn::MulAdd(dyi[n], hn::LoadU(d, after + n * width + j), dr);
      dk = hn::MulAdd(gi, vi[n], dk);
      dv[n] = hn::MulAdd(gi, k, dv[n]);
      dl = hn::MulAdd(gi, sb, dl);
      if (kUw) {
        su[n] = hn::MulAdd(sb, hn::LoadU(d, token.u + j), su[n]);
        gw[n] = hn::MulAdd(gi, hn::LoadU(d, token.w + j), gw[n]);
        hn::StoreU(gi, d, g + n * width + j);
      } else {
        hn::StoreU(hn::Mul(gi, decay), d, g + n * width + j);
      }
    }
    hn::StoreU(dr, d, grads.r + j);
    hn::StoreU(dk, d, grads.k + j);
    hn::StoreU(hn::MulAdd(dl, decay, hn::LoadU(d, grads.decay + j)), d, grads.decay + j);
  }
  for (int n = 0; n < kRows; ++n) grads.v[i + n] = hn::GetLane(hn::SumOfLanes(d, dv[n]));
  if (!kUw) return;
#pragma GCC unroll 4
  for (int n = 0; n < kRows; ++n) {
    su[n] = hn::SumOfLanes(d, su[n]);
    gw[n] = hn::SumOfLanes(d, gw[n]);
  }
  for (int64_t j = 0; j < width; j += step) {
    const V u = hn::LoadU(d, token.u + j), decay = hn::LoadU(d, token.decay + j);
    V du = hn::LoadU(d, grads.u + j), dw = hn::LoadU(d, grads.w + j);
#pragma GCC unroll 4
    for (int n = 0; n < kRows; ++n) {
      const V gi = hn::LoadU(d, g + n * width + j);
      du = hn::MulAdd(hn::LoadU(d, before + n * width + j), gw[n], du);
      dw = hn::MulAdd(gi, su[n], dw);
      hn::StoreU(hn::MulAdd(gw[n], u, hn::Mul(gi, decay)), d, g + n * width + j);
    }
    hn::StoreU(du, d, grads.u + j);
    hn::StoreU(dw, d, grads.w + j);
  }
}

void Advance(const Token& token, int64_t values, int64_t width, const float* before, const float* v, float* after) {
  if (token.u)
    AdvanceAll<true>(token, values, width, before, v, after);
  else
    AdvanceAll<false>(token, values, width, before, v, after);
}

template <bool kUw>
void BackwardAll(const Token& token, int64_t values, int64_t width, const float* before, const float* after,
                 const float* v, const float* dy, float* g, const TokenGrads& grads) {
  int64_t i = 0;
  for (; i + 4 <= values; i += 4) BackwardRows<kUw, 4>(token, width, before, after, v, dy, g, grads, i);
  for (; i < values; ++i) BackwardRows<kUw, 1>(token, width, before, after, v, dy, g, grads, i);
}

void Backward(const Token& token, int64_t values, int64_t width, const float* before, const float* after,
              const float* v, const float* dy, float* g, const TokenGrads& grads) {
  if (token.u)
    BackwardAll<true>(token, values, width, before, after, v, dy, g, grads);
  else
    BackwardAll<false>(token, values, width, before, after, v, dy, g, grads);
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::scan_steps
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::scan_steps {

HWY_EXPORT(LanesOf);
HWY_EXPORT(Exponentials);
HWY_EXPORT(Forward);
HWY_EXPORT(Advance);
HWY_EXPORT(Backward);

int64_t lanes() { return HWY_DYNAMIC_DISPATCH(LanesOf)(); }
int64_t padded(int64_t n) { return (n + lanes() - 1) / lanes() * lanes(); }
void exponentials(const float* log_decay, int64_t n, float* decay) {
  HWY_DYNAMIC_DISPATCH(Exponentials)(log_decay, n, decay);
}
void forward(const Token& token, int64_t keys, int64_t rows, float* state, const float* v, float* y) {
  HWY_DYNAMIC_DISPATCH(Forward)(token, keys, rows, state, v, y);
}
void advance(const Token& token, int64_t values, int64_t keys, const float* before, const float* v, float* after) {
  HWY_DYNAMIC_DISPATCH(Advance)(token, values, padded(keys), before, v, after);
}
void backward(const Token& token, int64_t values, int64_t keys, const float* before, const float* after, const float* v,
              const float* dy, float* g, const TokenGrads& grads) {
  HWY_DYNAMIC_DISPATCH(Backward)(token, values, padded(keys), before, after, v, dy, g, grads);
}

}  // namespace hierarchos::scan_steps
#endif
