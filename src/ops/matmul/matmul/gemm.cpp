// Highway kernels of gemm.h, compiled once for each instruction set.
#include "ops/matmul/matmul/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/error.h"
#include "ops/matmul/matmul/decode.h"

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)  // the portable target serves what is older than AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul/gemm.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/cache_control.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hierarchos::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The portable targets have one lane or emulated ones, and do not round halves to nearest even.
#undef HIERARCHOS_VECTOR_TARGET
#define HIERARCHOS_VECTOR_TARGET (HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR)

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET_IS_NEON
constexpr int kRowsA = 12;  // 24 sums, 2 columns of B and a broadcast fit 32 registers
#elif HWY_TARGET == HWY_AVX2
constexpr int kRowsA = 6;  // 12 sums of 16 registers
#else
constexpr int kRowsA = 4;
#endif
constexpr int64_t kRowsB = 2 * static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int64_t kWidest = kRowsB > kRowsA ? kRowsB : kRowsA;

int64_t RowsA() { return kRowsA; }
int64_t RowsB() { return kRowsB; }

// --- conversions

HWY_INLINE V LoadF32(D d, const float* p) { return hn::LoadU(d, p); }
HWY_INLINE V LoadBf16(D d, const uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, p))));
}
HWY_INLINE V LoadF16(D d, const uint16_t* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}

void Load(const std::byte* from, DType dtype, int64_t n, float* HWY_RESTRICT to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (dtype == DType::F32) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  const auto* bits = reinterpret_cast<const uint16_t*>(from);
  if (dtype == DType::BF16) {
    for (; i + lanes <= n; i += lanes) hn::StoreU(LoadBf16(d, bits + i), d, to + i);
    for (; i < n; ++i) to[i] = bf16_to_f32(bits[i]);
  } else {
    for (; i + lanes <= n; i += lanes) hn::StoreU(LoadF16(d, bits + i), d, to + i);
    for (; i < n; ++i) to[i] = f16_to_f32(bits[i]);
  }
}

void Store(const float* HWY_RESTRICT from, int64_t n, DType dtype, std::byte* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (dtype == DType::F32) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  auto* bits = reinterpret_cast<uint16_t*>(to);
  if (dtype == DType::BF16) {
    const hn::RebindToUnsigned<D> d32;
    const hn::Rebind<uint16_t, D> d16;
    for (; i + lanes <= n; i += lanes) {
      const V v = hn::LoadU(d, from + i);
      const auto u = hn::BitCast(d32, v);
      const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(d32, 1));
      const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(d32, 0x7FFF))));
      const auto nan = hn::Or(hn::ShiftRight<16>(u), hn::Set(d32, 0x40));
      const auto is_nan = hn::RebindMask(d32, hn::IsNaN(v));
      const hn::RebindToSigned<decltype(d32)> s32;
      hn::StoreU(hn::DemoteTo(d16, hn::BitCast(s32, hn::IfThenElse(is_nan, nan, rounded))), d16, bits + i);
    }
    for (; i < n; ++i) bits[i] = f32_to_bf16(from[i]);
  } else {
#if HIERARCHOS_VECTOR_TARGET
    const hn::Rebind<hwy::float16_t, D> d16;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d, from + i)), d16, reinterpret_cast<hwy::float16_t*>(bits + i));
#endif
    for (; i < n; ++i) bits[i] = f32_to_f16(from[i]);
  }
}

// --- packing

// out[k·width + r] = rows[r][k]: four rows at a time through 4 × 4 transposes.
void Interleave(const float* const* rows, int count, int64_t k, int64_t width, float* HWY_RESTRICT out) {
  int r = 0;
#if HIERARCHOS_VECTOR_TARGET
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  for (; r + 4 <= count; r += 4) {
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
      const auto v0 = hn::LoadU(d, rows[r] + i), v1 = hn::LoadU(d, rows[r + 1] + i);
      const auto v2 = hn::LoadU(d, rows[r + 2] + i), v3 = hn::LoadU(d, rows[r + 3] + i);
      const auto a = hn::BitCast(d64, hn::InterleaveLower(d, v0, v1)),
                 b = hn::BitCast(d64, hn::InterleaveLower(d, v2, v3));
      const auto e = hn::BitCast(d64, hn::InterleaveUpper(d, v0, v1)),
                 f = hn::BitCast(d64, hn::InterleaveUpper(d, v2, v3));
      float* to = out + i * width + r;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, a, b)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, a, b)), d, to + width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, e, f)), d, to + 2 * width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, e, f)), d, to + 3 * width);
    }
    for (; i < k; ++i)
      for (int j = 0; j < 4; ++j) out[i * width + r + j] = rows[r + j][i];
  }
#endif
  for (; r < count; ++r)
    for (int64_t i = 0; i < k; ++i) out[i * width + r] = rows[r][i];
}

// One panel: `count` of `width` rows from row `row`; the rest are zeros.
void PackPanel(const Source& s, int64_t row, int count, int64_t width, int64_t k0, int64_t k, float* HWY_RESTRICT out) {
  if (count < width) std::memset(out, 0, static_cast<size_t>(width * k) * sizeof(float));
  const auto size = static_cast<int64_t>(size_of(s.dtype));
  if (s.storage == Storage::Plain && !s.offsets && (s.k_offsets || s.k_stride != 1)) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t column = s.k_offsets ? s.k_offsets[k0 + i] : (k0 + i) * s.k_stride;
      Load(s.data + (row + column) * size, s.dtype, count, out + i * width);
    }
    return;
  }
  const float* rows[kWidest];
  float* converted = nullptr;
  if (s.storage != Storage::Plain || s.dtype != DType::F32) converted = thread_buffer(7, width * k);
  for (int r = 0; r < count; ++r) {
    if (s.storage != Storage::Plain) {
      load_blocks(s, row + r, k0, k, converted + r * k);
      rows[r] = converted + r * k;
      continue;
    }
    const std::byte* at = s.data + ((s.offsets ? s.offsets[row + r] : (row + r) * s.row_stride) + k0) * size;
    if (converted) {
      Load(at, s.dtype, k, converted + r * k);
      rows[r] = converted + r * k;
    } else {
      rows[r] = reinterpret_cast<const float*>(at);
    }
  }
  Interleave(rows, count, k, width, out);
}

void PackB(const Source& s, int64_t row, int64_t rows, int64_t k0, int64_t k, float* out) {
  for (int64_t r = 0; r < rows; r += kRowsB, out += kRowsB * k)
    PackPanel(s, row + r, static_cast<int>(std::min(kRowsB, rows - r)), kRowsB, k0, k, out);
}

// The last panel of A is as narrow as a register tile for its rows.
int64_t PanelWidth(int64_t left) {
  if (left >= kRowsA) return kRowsA;
  for (int64_t w : {1, 2, 4, 8})
    if (left <= w && w < kRowsA) return w;
  return kRowsA;
}

void PackA(const Source& s, int64_t row, int64_t rows, int64_t k0, int64_t k, const Prologue& p, float* out) {
  for (int64_t r = 0; r < rows;) {
    const int64_t width = PanelWidth(rows - r), count = std::min(width, rows - r);
    PackPanel(s, row + r, static_cast<int>(count), width, k0, k, out);
    if (p.rows || p.columns || p.scale != 1) {
      float factors[16];
      for (int64_t j = 0; j < width; ++j) factors[j] = p.scale * (p.rows && j < count ? p.rows[row + r + j] : 1.0f);
      for (int64_t i = 0; i < k; ++i) {
        const float c = p.columns ? p.columns[k0 + i] : 1.0f;
        for (int64_t j = 0; j < width; ++j) out[i * width + j] *= factors[j] * c;
      }
    }
    out += width * k;
    r += width;
  }
}

// --- the register tile: kRows of A × 2 vectors of B

template <int kRows>
HWY_NOINLINE void Tile(int64_t k, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT c,
                       int64_t ldc, int64_t rows, int64_t columns, bool accumulate) {
  const D d;
  constexpr int64_t kLanes = kRowsB / 2;
  V low[kRows], high[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) low[r] = high[r] = hn::Zero(d);
  for (int64_t i = 0; i < k; ++i) {
    const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a[r]);
      low[r] = hn::MulAdd(x, b0, low[r]);
      high[r] = hn::MulAdd(x, b1, high[r]);
    }
    a += kRows;
    b += kRowsB;
  }
  if (rows == kRows && columns == kRowsB) {
    if (accumulate) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        low[r] = hn::Add(low[r], hn::LoadU(d, c + r * ldc));
        high[r] = hn::Add(high[r], hn::LoadU(d, c + r * ldc + kLanes));
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      hn::StoreU(low[r], d, c + r * ldc);
      hn::StoreU(high[r], d, c + r * ldc + kLanes);
    }
    return;
  }
  HWY_ALIGN float edge[kRows * kRowsB];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    hn::Store(low[r], d, edge + r * kRowsB);
    hn::Store(high[r], d, edge + r * kRowsB + kLanes);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) c[r * ldc + j] = edge[r * kRowsB + j] + (accumulate ? c[r * ldc + j] : 0.0f);
}

// One sum's additions in a row: shorter partial sums round less, and adding them up costs 2 % of the products.
constexpr int64_t kPartialSum = 128;

template <int kRows>
void Tiles(int64_t k, const float* a, const float* b, float* c, int64_t ldc, int64_t rows, int64_t columns,
           bool accumulate) {
  for (int64_t i = 0; i == 0 || i < k; i += kPartialSum)
    Tile<kRows>(std::min(kPartialSum, k - i), a + i * kRows, b + i * kRowsB, c, ldc, rows, columns,
                accumulate || i > 0);
}

void Multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int64_t ldc, bool accumulate) {
  for (int64_t j = 0; j < n; j += kRowsB, b += kRowsB * k) {
    const int64_t columns = std::min(kRowsB, n - j);
    const float* panel = a;
    for (int64_t i = 0; i < m;) {
      const int64_t width = PanelWidth(m - i), rows = std::min(width, m - i);
      auto tiles = Tiles<kRowsA>;
      if (width == 1) tiles = Tiles<1>;
      if (width == 2) tiles = Tiles<2>;
      if (kRowsA > 4 && width == 4) tiles = Tiles<4>;
      if (kRowsA > 8 && width == 8) tiles = Tiles<8>;
      tiles(k, panel, b, c + i * ldc + j, ldc, rows, columns, accumulate);
      panel += width * k;
      i += width;
    }
  }
}

// --- few rows of x over rows of w

struct F32Row {
  using T = float;
  static HWY_INLINE V At(D d, const T* p) { return LoadF32(d, p); }
  static float One(const T* p) { return *p; }
};
struct Bf16Row {
  using T = uint16_t;
  static HWY_INLINE V At(D d, const T* p) { return LoadBf16(d, p); }
  static float One(const T* p) { return bf16_to_f32(*p); }
};
struct F16Row {
  using T = uint16_t;
  static HWY_INLINE V At(D d, const T* p) { return LoadF16(d, p); }
  static float One(const T* p) { return f16_to_f32(*p); }
};

#if HIERARCHOS_VECTOR_TARGET
// The sums over the lanes of four vectors, at a third of the cost of one after another.
HWY_INLINE void SumsOfLanes(const V* v, float* out) {
  const D d;
  const hn::Repartition<uint64_t, D> d64;
  const auto pairs = [&](V a, V b) {  // of each block of four lanes: a₀ + a₂, b₀ + b₂, a₁ + a₃, b₁ + b₃
    return hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto ab = pairs(v[0], v[1]), cd = pairs(v[2], v[3]);
  const V blocks =
      hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab, cd)), hn::BitCast(d, hn::InterleaveUpper(d64, ab, cd)));
#if HWY_MAX_BYTES == 64
  const hn::Half<D> half;
  const auto two = hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
  const hn::Half<decltype(half)> quarter;
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)), quarter, out);
#elif HWY_MAX_BYTES == 32
  const hn::Half<D> half;
  hn::StoreU(hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks)), half, out);
#else
  hn::StoreU(blocks, d, out);
#endif
}
#endif

// kM rows of x by kW rows of w. With one or two rows of x, two sums each hide the latency of the additions.
template <class Row, int kM, int kW>
HWY_NOINLINE void Dots(const float* HWY_RESTRICT x, int64_t ldx, const typename Row::T* const* w, int64_t k,
                       float* HWY_RESTRICT c, int64_t ldc) {
  const D d;
  constexpr int kUnroll = kM <= 2 ? 2 : 1;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const typename Row::T* rows[kW];
  for (int j = 0; j < kW; ++j) rows[j] = w[j];
  V sums[kM * kW * kUnroll];
#pragma GCC unroll 16
  for (int i = 0; i < kM * kW * kUnroll; ++i) sums[i] = hn::Zero(d);
  int64_t i = 0;
  for (; i + kUnroll * lanes <= k; i += kUnroll * lanes) {
#pragma GCC unroll 2
    for (int u = 0; u < kUnroll; ++u) {
      V wv[kW];
#pragma GCC unroll 4
      for (int j = 0; j < kW; ++j) wv[j] = Row::At(d, rows[j] + i + u * lanes);
#pragma GCC unroll 4
      for (int m = 0; m < kM; ++m) {
        const V xv = hn::LoadU(d, x + m * ldx + i + u * lanes);
#pragma GCC unroll 4
        for (int j = 0; j < kW; ++j) {
          const int s = (u * kM + m) * kW + j;
          sums[s] = hn::MulAdd(xv, wv[j], sums[s]);
        }
      }
    }
  }
  if (kUnroll == 2) {
#pragma GCC unroll 16
    for (int s = 0; s < kM * kW; ++s) sums[s] = hn::Add(sums[s], sums[s + kM * kW * (kUnroll - 1)]);
  }
  for (; i + lanes <= k; i += lanes) {
#pragma GCC unroll 4
    for (int m = 0; m < kM; ++m)
#pragma GCC unroll 4
      for (int j = 0; j < kW; ++j)
        sums[m * kW + j] = hn::MulAdd(hn::LoadU(d, x + m * ldx + i), Row::At(d, rows[j] + i), sums[m * kW + j]);
  }
#if HIERARCHOS_VECTOR_TARGET
  if constexpr (kW == 4) {
#pragma GCC unroll 4
    for (int m = 0; m < kM; ++m) {
      SumsOfLanes(sums + m * kW, c + m * ldc);
      for (int64_t t = i; t < k; ++t)
        for (int j = 0; j < kW; ++j) c[m * ldc + j] += x[m * ldx + t] * Row::One(rows[j] + t);
    }
    return;
  }
#endif
  for (int m = 0; m < kM; ++m)
    for (int j = 0; j < kW; ++j) {
      float sum = hn::GetLane(hn::SumOfLanes(d, sums[m * kW + j]));
      for (int64_t t = i; t < k; ++t) sum += x[m * ldx + t] * Row::One(rows[j] + t);
      c[m * ldc + j] = sum;
    }
}

template <class Row, int kW>
void DotsOfRows(const float* x, int64_t ldx, int64_t m, const typename Row::T* const* w, int64_t k, float* c,
                int64_t ldc) {
  for (; m >= 4; m -= 4, x += 4 * ldx, c += 4 * ldc) Dots<Row, 4, kW>(x, ldx, w, k, c, ldc);
  if (m == 3) Dots<Row, 3, kW>(x, ldx, w, k, c, ldc);
  if (m == 2) Dots<Row, 2, kW>(x, ldx, w, k, c, ldc);
  if (m == 1) Dots<Row, 1, kW>(x, ldx, w, k, c, ldc);
}

constexpr int64_t kAhead = 8;  // rows

template <typename T>
HWY_INLINE void PrefetchRow(const T* row, int64_t n) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(64 / sizeof(T))) hwy::Prefetch(row + i);
}

// Row `row + j` of w is at offsets[row + j], or row_stride apart without offsets.
template <class Row>
void AllDots(const float* x, int64_t ldx, int64_t m, const Source& w, int64_t row, int64_t rows, int64_t k, float* c,
             int64_t ldc) {
  const auto* base = reinterpret_cast<const typename Row::T*>(w.data);
  const typename Row::T* at[4];
  for (int64_t j = 0; j < rows;) {
    const int64_t some = rows - j >= 4 ? 4 : 1;
    for (int64_t r = 0; r < some; ++r)
      at[r] = base + (w.offsets ? w.offsets[row + j + r] : (row + j + r) * w.row_stride);
    if (w.offsets) {  // rows far apart, which the hardware does not foresee
      for (int64_t r = 0; r < 4 && j + kAhead + r < rows; ++r) PrefetchRow(base + w.offsets[row + j + kAhead + r], k);
    }
    if (some == 4)
      DotsOfRows<Row, 4>(x, ldx, m, at, k, c + j, ldc);
    else
      DotsOfRows<Row, 1>(x, ldx, m, at, k, c + j, ldc);
    j += some;
  }
}

void MultiplyRows(const float* x, int64_t ldx, int64_t m, const Source& w, int64_t row, int64_t rows, int64_t k,
                  float* c, int64_t ldc) {
  if (w.storage != Storage::Plain) {
    float* decoded = thread_buffer(7, 4 * k);
    Source plain;
    plain.data = reinterpret_cast<const std::byte*>(decoded);
    plain.row_stride = k;
    for (int64_t j = 0; j < rows; j += 4) {
      const int64_t some = std::min<int64_t>(4, rows - j);
      for (int64_t r = 0; r < some; ++r) load_blocks(w, row + j + r, 0, k, decoded + r * k);
      AllDots<F32Row>(x, ldx, m, plain, 0, some, k, c + j, ldc);
    }
    return;
  }
  if (w.dtype == DType::F32)
    AllDots<F32Row>(x, ldx, m, w, row, rows, k, c, ldc);
  else if (w.dtype == DType::BF16)
    AllDots<Bf16Row>(x, ldx, m, w, row, rows, k, c, ldc);
  else
    AllDots<F16Row>(x, ldx, m, w, row, rows, k, c, ldc);
}

// kM rows of x, kN vectors of columns.
template <class Row, int kM, int kN>
HWY_NOINLINE void Combine(const float* x, int64_t ldx, const typename Row::T* v, const int64_t* offsets, int64_t k,
                          float* c, int64_t ldc) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kM * kN];
#pragma GCC unroll 16
  for (int m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int j = 0; j < kN; ++j) sums[m * kN + j] = hn::LoadU(d, c + m * ldc + j * lanes);
  for (int64_t i = 0; i < k; ++i) {
    const typename Row::T* row = v + offsets[i];
    if (kN > 1 && i + kAhead < k) PrefetchRow(v + offsets[i + kAhead], kN * lanes);
    V vv[kN];
#pragma GCC unroll 4
    for (int j = 0; j < kN; ++j) vv[j] = Row::At(d, row + j * lanes);
#pragma GCC unroll 4
    for (int m = 0; m < kM; ++m) {
      const V xv = hn::Set(d, x[m * ldx + i]);
#pragma GCC unroll 4
      for (int j = 0; j < kN; ++j) sums[m * kN + j] = hn::MulAdd(xv, vv[j], sums[m * kN + j]);
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < kM; ++m)
#pragma GCC unroll 4
    for (int j = 0; j < kN; ++j) hn::StoreU(sums[m * kN + j], d, c + m * ldc + j * lanes);
}

template <class Row, int kM>
void CombineColumns(const float* x, int64_t ldx, const Source& s, int64_t k, int64_t n, float* c, int64_t ldc) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* v = reinterpret_cast<const typename Row::T*>(s.data);
  int64_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes) Combine<Row, kM, 4>(x, ldx, v + j, s.offsets, k, c + j, ldc);
  for (; j + lanes <= n; j += lanes) Combine<Row, kM, 1>(x, ldx, v + j, s.offsets, k, c + j, ldc);
  for (int m = 0; m < kM; ++m)
    for (int64_t t = j; t < n; ++t) {
      float sum = c[m * ldc + t];
      for (int64_t i = 0; i < k; ++i) sum += x[m * ldx + i] * Row::One(v + s.offsets[i] + t);
      c[m * ldc + t] = sum;
    }
}

template <class Row>
void CombineAll(const float* x, int64_t ldx, int64_t m, const Source& v, int64_t k, int64_t n, float* c, int64_t ldc) {
  for (; m >= 4; m -= 4, x += 4 * ldx, c += 4 * ldc) CombineColumns<Row, 4>(x, ldx, v, k, n, c, ldc);
  if (m == 3) CombineColumns<Row, 3>(x, ldx, v, k, n, c, ldc);
  if (m == 2) CombineColumns<Row, 2>(x, ldx, v, k, n, c, ldc);
  if (m == 1) CombineColumns<Row, 1>(x, ldx, v, k, n, c, ldc);
}

void CombineRows(const float* x, int64_t ldx, int64_t m, const Source& v, int64_t k, int64_t n, float* c, int64_t ldc) {
  if (v.dtype == DType::F32)
    CombineAll<F32Row>(x, ldx, m, v, k, n, c, ldc);
  else if (v.dtype == DType::BF16)
    CombineAll<Bf16Row>(x, ldx, m, v, k, n, c, ldc);
  else
    CombineAll<F16Row>(x, ldx, m, v, k, n, c, ldc);
}

// --- epilogue

// Error function as a rational approximation on [-4, 4] (Eigen's coefficients), a few units in the last place.
HWY_INLINE V Erf(D d, V x) {
  x = hn::Min(hn::Max(x, hn::Set(d, -4.0f)), hn::Set(d, 4.0f));
  const V z = hn::Mul(x, x);
  V p = hn::Set(d, -2.72614225801306e-10f);
  for (float c : {2.77068142495902e-08f, -2.10102402082508e-06f, -5.69250639462346e-05f, -7.34990630326855e-04f,
                  -2.95459980854025e-03f, -1.60960333262415e-02f})
    p = hn::MulAdd(p, z, hn::Set(d, c));
  V q = hn::Set(d, -1.45660718464996e-05f);
  for (float c : {-2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f, -1.42647390514189e-02f})
    q = hn::MulAdd(q, z, hn::Set(d, c));
  return hn::Div(hn::Mul(x, p), q);
}

// NaN stays NaN, which the library's functions do not promise.
HWY_INLINE V KeepNan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

HWY_INLINE V Tanh(D d, V x) { return KeepNan(x, hn::Tanh(d, x)); }

// The exponential's range ends where its result does.
HWY_INLINE V Logistic(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return KeepNan(x, hn::Div(one, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 89.0f))))));
}

HWY_INLINE V Activate(D d, Activation act, V x) {
  const V half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
  switch (act) {
    case Activation::None:
      return x;
    case Activation::Silu:
      return hn::Mul(x, Logistic(d, x));
    case Activation::Gelu:
      return hn::Mul(hn::Mul(half, x), hn::Add(one, Erf(d, hn::Mul(x, hn::Set(d, 0.70710678118654752f)))));
    case Activation::GeluTanh: {
      const V inner =
          hn::Mul(hn::Set(d, 0.79788456080286536f), hn::MulAdd(hn::Mul(hn::Set(d, 0.044715f), hn::Mul(x, x)), x, x));
      return hn::Mul(hn::Mul(half, x), hn::Add(one, Tanh(d, inner)));
    }
    // Written so that NaN stays NaN.
    case Activation::Relu:
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
    case Activation::Relu2:
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), hn::Mul(x, x));
    case Activation::Tanh:
      return Tanh(d, x);
    case Activation::Sigmoid:
      return Logistic(d, x);
  }
  return x;
}

void FinishRow(const Epilogue& e, int64_t n, const float* sums, const float* second, const float* bias,
               const float* bias2, const float* residual, float* out) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V cap = hn::Set(d, e.softcap), inverse = hn::Set(d, e.softcap != 0 ? 1 / e.softcap : 0.0f);
  for (int64_t i = 0; i < n; i += lanes) {
    V v = hn::LoadU(d, sums + i);
    if (bias) v = hn::Add(v, hn::LoadU(d, bias + i));
    v = Activate(d, e.act, v);
    if (e.gate) {
      V u = hn::LoadU(d, second + i);
      if (bias2) u = hn::Add(u, hn::LoadU(d, bias2 + i));
      v = hn::Mul(v, u);
    }
    if (e.softcap != 0) v = hn::Mul(cap, Tanh(d, hn::Mul(v, inverse)));
    if (residual) v = hn::Add(v, hn::LoadU(d, residual + i));
    hn::StoreU(v, d, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::gemm {

HWY_EXPORT(RowsA);
HWY_EXPORT(RowsB);
HWY_EXPORT(PackA);
HWY_EXPORT(PackB);
HWY_EXPORT(Multiply);
HWY_EXPORT(MultiplyRows);
HWY_EXPORT(CombineRows);
HWY_EXPORT(Load);
HWY_EXPORT(Store);
HWY_EXPORT(FinishRow);

int64_t panel_rows_a() { return HWY_DYNAMIC_DISPATCH(RowsA)(); }
int64_t panel_rows_b() { return HWY_DYNAMIC_DISPATCH(RowsB)(); }
int64_t packed_floats_a(int64_t rows, int64_t k) { return (rows + panel_rows_a()) * k; }
int64_t packed_floats_b(int64_t rows, int64_t k) {
  return (rows + panel_rows_b() - 1) / panel_rows_b() * panel_rows_b() * k;
}
void pack_a(const Source& s, int64_t row, int64_t rows, int64_t k0, int64_t k, const Prologue& p, float* out) {
  HWY_DYNAMIC_DISPATCH(PackA)(s, row, rows, k0, k, p, out);
}
void pack_b(const Source& s, int64_t row, int64_t rows, int64_t k0, int64_t k, float* out) {
  HWY_DYNAMIC_DISPATCH(PackB)(s, row, rows, k0, k, out);
}
void multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int64_t ldc, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(Multiply)(m, n, k, a, b, c, ldc, accumulate);
}
void multiply_rows(const float* x, int64_t ldx, int64_t m, const Source& w, int64_t row, int64_t rows, int64_t k,
                   float* c, int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(MultiplyRows)(x, ldx, m, w, row, rows, k, c, ldc);
}
void combine_rows(const float* x, int64_t ldx, int64_t m, const Source& v, int64_t k, int64_t n, float* c,
                  int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(CombineRows)(x, ldx, m, v, k, n, c, ldc);
}
void load(const std::byte* from, DType dtype, int64_t n, float* to) { HWY_DYNAMIC_DISPATCH(Load)(from, dtype, n, to); }
void store(const float* from, int64_t n, DType dtype, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(Store)(from, n, dtype, to);
}
void finish_row(const Epilogue& e, int64_t n, const float* sums, const float* second, const float* bias,
                const float* bias2, const float* residual, float* out) {
  HWY_DYNAMIC_DISPATCH(FinishRow)(e, n, sums, second, bias, bias2, residual, out);
}

void load_blocks(const Source& source, int64_t row, int64_t k0, int64_t k, float* out) {
  const int64_t elements = block_elements(source.storage), bytes = block_bytes(source.storage);
  const std::byte* at = source.data + (row * source.columns + k0) / elements * bytes;
  decode_blocks(source.storage, at, k / elements, out);
}

float* thread_buffer(int slot, int64_t floats) {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  struct Buffer {
    std::unique_ptr<float, Free> memory;
    int64_t size = 0;
  };
  thread_local Buffer buffers[8];
  Buffer& b = buffers[slot];
  if (b.size < floats) {
    const size_t bytes = (static_cast<size_t>(floats) * sizeof(float) + 63) / 64 * 64;
    b.memory.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (!b.memory) throw DeviceError("out of memory: {} bytes of working memory for a product", bytes);
    b.size = floats;
  }
  return b.memory.get();
}

}  // namespace hierarchos::gemm
#endif
