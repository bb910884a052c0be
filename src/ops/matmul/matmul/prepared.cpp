// Highway kernels of prepared.h. A group's piece (16 rows × 32 columns) is expanded to 16 vectors of 16-bit pairs,
// which stay in registers while all rows of x pass by.
#include "ops/matmul/matmul/prepared.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "ops/matmul/matmul/gemm.h"
#include "quant/layout.h"

// AVX3_DL: processors with VNNI, whose 16-bit products and sums are one instruction.
#define HWY_WANT_AVX3_DL
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul/prepared.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
#undef HIERARCHOS_VNNI
#if HWY_TARGET == HWY_AVX3_DL && defined(__GNUC__) && !defined(__clang__)
#define HIERARCHOS_VNNI 1
#pragma GCC target("avx512vnni")
#else
#define HIERARCHOS_VNNI 0
#endif
namespace hierarchos::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using DU = hn::RebindToUnsigned<D>;
using VI = hn::Vec<DI>;
using VU = hn::Vec<DU>;
using Byte = uint8_t;

HWY_INLINE int Lanes() { return static_cast<int>(hn::Lanes(D())); }
HWY_INLINE VU Word(const Byte* p) { return hn::LoadU(DU(), reinterpret_cast<const uint32_t*>(p)); }

#if HWY_TARGET == HWY_SCALAR
// Processors without the vectors below: rows of the weight as fp32.
void MultiplyGroup(Storage storage, const Byte* group, const QuantizedRows& x, int64_t first, int64_t count, float* c,
                   int64_t ldc) {
  const int64_t columns = x.pieces * kPieceColumns;
  float* row = thread_buffer(7, columns);
  for (int64_t j = 0; j < kGroupRows; ++j) {
    decode_row16(storage, reinterpret_cast<const std::byte*>(group), columns, j, row);
    for (int64_t r = 0; r < count; ++r) {
      float sum = 0;
      for (int64_t p = 0; p < x.pieces; ++p) {
        const int64_t at = p * x.rows + first + r;
        float piece = 0;
        for (int64_t i = 0; i < kPieceColumns; ++i)
          piece += row[p * kPieceColumns + i] * static_cast<float>(x.values[at * kPieceColumns + i]);
        sum += piece * x.scales[at];
      }
      c[r * ldc + j] = sum;
    }
  }
}
#else
using D16 = hn::Repartition<int16_t, D>;
using V16 = hn::Vec<D16>;
constexpr int kPairs = 16;  // of columns in a piece

// sum + a₀·b₀ + a₁·b₁ for each lane's two 16-bit halves.
HWY_INLINE VI DotPairs(VI sum, V16 a, V16 b) {
#if HIERARCHOS_VNNI
  return VI{_mm512_dpwssd_epi32(sum.raw, a.raw, b.raw)};
#elif HWY_TARGET_IS_NEON || HWY_TARGET == HWY_EMU128
  const DI d;
  VI low = hn::Zero(d), high = hn::Zero(d);
  low = hn::ReorderWidenMulAccumulate(d, a, b, low, high);
  return hn::Add(sum, hn::RearrangeToOddPlusEven(low, high));
#else
  VI unused = sum;
  return hn::ReorderWidenMulAccumulate(DI(), a, b, sum, unused);
#endif
}

HWY_INLINE V16 Pairs(VU x) { return hn::BitCast(D16(), x); }
HWY_INLINE V Halves(const Byte* p, int lane) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(D(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p) + lane));
}
HWY_INLINE V Bytes(const Byte* p, int lane) {
  return hn::ConvertTo(D(), hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<uint8_t, D>(), p + lane)));
}
HWY_INLINE V SignedBytes(const Byte* p, int lane) {
  return hn::ConvertTo(
      D(), hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<int8_t, D>(), reinterpret_cast<const int8_t*>(p) + lane)));
}

// Low four bits of the columns: pair 4z + j from word z.
HWY_INLINE void Nibbles(const Byte* p, int lane, V16* w) {
  const VU mask = hn::Set(DU(), 0x000F000Fu);
#pragma GCC unroll 4
  for (int z = 0; z < 4; ++z) {
    const VU word = Word(p + 64 * z + 4 * lane);
    w[4 * z] = Pairs(hn::And(word, mask));
    w[4 * z + 1] = Pairs(hn::And(hn::ShiftRight<4>(word), mask));
    w[4 * z + 2] = Pairs(hn::And(hn::ShiftRight<8>(word), mask));
    w[4 * z + 3] = Pairs(hn::And(hn::ShiftRight<12>(word), mask));
  }
}

template <int kShift>
HWY_INLINE VU Shift(VU x) {
  if constexpr (kShift >= 0)
    return hn::ShiftRight<kShift>(x);
  else
    return hn::ShiftLeft<-kShift>(x);
}

template <int kBits, int kPair>
HWY_INLINE void AddHighOne(VU word, V16* w) {
  constexpr uint32_t kMask = (((1u << kBits) - 1) << 4) * 0x00010001u;
  w[kPair] = Pairs(hn::Or(hn::BitCast(DU(), w[kPair]), hn::And(Shift<kBits * kPair - 4>(word), hn::Set(DU(), kMask))));
}

// Bits above the fourth, of eight pairs.
template <int kBits, int kFirst>
HWY_INLINE void AddHighEight(VU word, V16* w) {
  AddHighOne<kBits, kFirst>(word, w);
  AddHighOne<kBits, kFirst + 1>(word, w);
  AddHighOne<kBits, kFirst + 2>(word, w);
  AddHighOne<kBits, kFirst + 3>(word, w);
  AddHighOne<kBits, kFirst + 4>(word, w);
  AddHighOne<kBits, kFirst + 5>(word, w);
  AddHighOne<kBits, kFirst + 6>(word, w);
  AddHighOne<kBits, kFirst + 7>(word, w);
}
HWY_INLINE void FifthBits(const Byte* p, int lane, V16* w) {
  const VU word = Word(p + 4 * lane);
  AddHighEight<1, 0>(word, w);
  AddHighEight<1, 8>(word, w);
}
HWY_INLINE void SixthBits(const Byte* p, int lane, V16* w) {
  AddHighEight<2, 0>(Word(p + 4 * lane), w);
  AddHighEight<2, 0>(Word(p + 64 + 4 * lane), w + 8);
}

// What a format is: how pairs come out of a piece, and the factors of a lane's two halves of columns (equal for all but
// Q6_K) and its minimum. kOffset: what is to be taken from a code.
struct Q4_0 {
  static constexpr bool kMin = false, kTwoScales = false;
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) { Nibbles(p + 32, lane, w); }
  static HWY_INLINE V Scale(const Byte*, const Byte* p, int lane) { return Halves(p, lane); }
  static HWY_INLINE V Min(const Byte*, const Byte*, int) { return hn::Zero(D()); }
};
struct Q4_1 {
  static constexpr bool kMin = true, kTwoScales = false;
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) { Nibbles(p + 64, lane, w); }
  static HWY_INLINE V Scale(const Byte*, const Byte* p, int lane) { return Halves(p, lane); }
  static HWY_INLINE V Min(const Byte*, const Byte* p, int lane) { return Halves(p + 32, lane); }
};
struct Q5_0 {
  static constexpr bool kMin = false, kTwoScales = false;
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) {
    Nibbles(p + 96, lane, w);
    FifthBits(p + 32, lane, w);
  }
  static HWY_INLINE V Scale(const Byte*, const Byte* p, int lane) { return Halves(p, lane); }
  static HWY_INLINE V Min(const Byte*, const Byte*, int) { return hn::Zero(D()); }
};
struct Q5_1 {
  static constexpr bool kMin = true, kTwoScales = false;
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) {
    Nibbles(p + 128, lane, w);
    FifthBits(p + 64, lane, w);
  }
  static HWY_INLINE V Scale(const Byte*, const Byte* p, int lane) { return Halves(p, lane); }
  static HWY_INLINE V Min(const Byte*, const Byte* p, int lane) { return Halves(p + 32, lane); }
};
struct Q8_0 {
  static constexpr bool kMin = false, kTwoScales = false;
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) {
#pragma GCC unroll 8
    for (int z = 0; z < 8; ++z) {
      const V16 word = Pairs(Word(p + 32 + 64 * z + 4 * lane));
      w[2 * z] = hn::ShiftRight<8>(hn::ShiftLeft<8>(word));
      w[2 * z + 1] = hn::ShiftRight<8>(word);
    }
  }
  static HWY_INLINE V Scale(const Byte*, const Byte* p, int lane) { return Halves(p, lane); }
  static HWY_INLINE V Min(const Byte*, const Byte*, int) { return hn::Zero(D()); }
};
struct Q4_K {
  static constexpr bool kMin = true, kTwoScales = false;
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) { Nibbles(p + 32, lane, w); }
  static HWY_INLINE V Scale(const Byte* shared, const Byte* p, int lane) {
    return hn::Mul(Halves(shared, lane), Bytes(p, lane));
  }
  static HWY_INLINE V Min(const Byte* shared, const Byte* p, int lane) {
    return hn::Neg(hn::Mul(Halves(shared + 32, lane), Bytes(p + 16, lane)));
  }
};
struct Q5_K : Q4_K {
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) {
    Nibbles(p + 96, lane, w);
    FifthBits(p + 32, lane, w);
  }
};
struct Q6_K {
  static constexpr bool kMin = false, kTwoScales = true;
  static HWY_INLINE void Expand(const Byte* p, int lane, V16* w) {
    Nibbles(p + 160, lane, w);
    SixthBits(p + 32, lane, w);
    const V16 offset = hn::Set(D16(), 32);
#pragma GCC unroll 16
    for (int i = 0; i < kPairs; ++i) w[i] = hn::Sub(w[i], offset);
  }
  static HWY_INLINE V Scale(const Byte* shared, const Byte* p, int lane) {
    return hn::Mul(Halves(shared, lane), SignedBytes(p, lane));
  }
  static HWY_INLINE V Second(const Byte* shared, const Byte* p, int lane) {
    return hn::Mul(Halves(shared, lane), SignedBytes(p + 16, lane));
  }
  static HWY_INLINE V Min(const Byte*, const Byte*, int) { return hn::Zero(D()); }
};

// One piece of one group, over all rows.
template <class F, bool kFirst>
HWY_INLINE void Piece(const Byte* shared, const Byte* piece, const QuantizedRows& x, int64_t at, int64_t count,
                      float* HWY_RESTRICT c, int64_t ldc) {
  const D d;
  const DI di;
  for (int lane = 0; lane < static_cast<int>(kGroupRows); lane += Lanes()) {
    V16 w[kPairs];
    F::Expand(piece, lane, w);
    const V scale = F::Scale(shared, piece, lane), min = F::Min(shared, piece, lane);
    V second = scale;
    if constexpr (F::kTwoScales) second = F::Second(shared, piece, lane);
    const int16_t* HWY_RESTRICT values = x.values + at * kPieceColumns;
    for (int64_t r = 0; r < count; ++r, values += kPieceColumns) {
      VI even = F::kTwoScales || F::kMin ? hn::Zero(di) : hn::Set(di, x.offsets[at + r]), odd = hn::Zero(di);
#pragma GCC unroll 8
      for (int i = 0; i < kPairs / 2; ++i) {
        // The first eight pairs go to one sum and the last eight to the other where scales differ.
        constexpr int kStep = F::kTwoScales ? 1 : 2, kOther = F::kTwoScales ? kPairs / 2 : 1;
        int32_t a, b;
        std::memcpy(&a, values + 2 * (kStep * i), sizeof(a));
        std::memcpy(&b, values + 2 * (kStep * i + kOther), sizeof(b));
        even = DotPairs(even, w[kStep * i], hn::BitCast(D16(), hn::Set(di, a)));
        odd = DotPairs(odd, w[kStep * i + kOther], hn::BitCast(D16(), hn::Set(di, b)));
      }
      const V factor = hn::Set(d, x.scales[at + r]);
      float* to = c + r * ldc + lane;
      V sum = kFirst ? hn::Zero(d) : hn::LoadU(d, to);
      if constexpr (F::kTwoScales) {
        const V both = hn::MulAdd(hn::ConvertTo(d, odd), second, hn::Mul(hn::ConvertTo(d, even), scale));
        sum = hn::MulAdd(both, factor, sum);
      } else {
        sum = hn::MulAdd(hn::Mul(hn::ConvertTo(d, hn::Add(even, odd)), factor), scale, sum);
      }
      if constexpr (F::kMin) sum = hn::MulAdd(min, hn::Set(d, x.sums[at + r]), sum);
      hn::StoreU(sum, d, to);
    }
  }
}

template <class F>
void MultiplyGroupOf(Storage storage, const Byte* group, const QuantizedRows& x, int64_t first, int64_t count, float* c,
                     int64_t ldc) {
  const Rows16 form = rows16_of(storage);
  for (int64_t p = 0; p < x.pieces; ++p) {
    const Byte* shared = group + p / form.pieces * form.superblock();
    const Byte* piece = shared + form.shared + p % form.pieces * form.piece;
    for (int64_t line = 0; line < form.piece; line += 64) hwy::Prefetch(piece + kFetchAhead + line);
    const int64_t at = p * x.rows + first;
    if (p == 0)
      Piece<F, true>(shared, piece, x, at, count, c, ldc);
    else
      Piece<F, false>(shared, piece, x, at, count, c, ldc);
  }
}

void MultiplyGroup(Storage storage, const Byte* group, const QuantizedRows& x, int64_t first, int64_t count, float* c,
                   int64_t ldc) {
  switch (storage) {
    case Storage::Q4_0:
      return MultiplyGroupOf<Q4_0>(storage, group, x, first, count, c, ldc);
    case Storage::Q4_1:
      return MultiplyGroupOf<Q4_1>(storage, group, x, first, count, c, ldc);
    case Storage::Q5_0:
      return MultiplyGroupOf<Q5_0>(storage, group, x, first, count, c, ldc);
    case Storage::Q5_1:
      return MultiplyGroupOf<Q5_1>(storage, group, x, first, count, c, ldc);
    case Storage::Q8_0:
      return MultiplyGroupOf<Q8_0>(storage, group, x, first, count, c, ldc);
    case Storage::Q4_K:
      return MultiplyGroupOf<Q4_K>(storage, group, x, first, count, c, ldc);
    case Storage::Q5_K:
      return MultiplyGroupOf<Q5_K>(storage, group, x, first, count, c, ldc);
    case Storage::Q6_K:
      return MultiplyGroupOf<Q6_K>(storage, group, x, first, count, c, ldc);
    default:
      throw UnsupportedError("matmul on the CPU has no prepared {} weights", name_of(storage));
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

// What unsigned codes of a format are too large by, where no minimum takes care of it.
int32_t OffsetOf(Storage storage) {
  if (storage == Storage::Q4_0) return 8;
  return storage == Storage::Q5_0 ? 16 : 0;
}

// 32 values to whole numbers of 1 / inverse; returns their sum, if it is wanted. `rest`, if there is any: what rounding
// left, in those units.
template <bool kRest>
HWY_INLINE int32_t RoundPiece(const float* x, float inverse, bool wants_sum, int16_t* q, float* rest) {
  const D d;
  const V factor = hn::Set(d, inverse);
  const hn::Rebind<int16_t, D> d16;
  VI sum = hn::Zero(DI());
  for (int i = 0; i < static_cast<int>(kPieceColumns); i += Lanes()) {
    const V v = hn::LoadU(d, x + i);
    const VI n = hn::NearestInt(hn::Mul(v, factor));
    sum = hn::Add(sum, n);
    hn::StoreU(hn::DemoteTo(d16, n), d16, q + i);
    if constexpr (kRest) hn::StoreU(hn::MulSub(v, factor, hn::ConvertTo(d, n)), d, rest + i);
  }
  return wants_sum ? hn::GetLane(hn::SumOfLanes(DI(), sum)) : 0;
}

// Largest magnitude of 32 values; NaN if one is not finite: as whole numbers, their bits are the largest.
HWY_INLINE float Largest(const float* x) {
  const D d;
  VI most = hn::Zero(DI());
  for (int i = 0; i < static_cast<int>(kPieceColumns); i += Lanes())
    most = hn::Max(most, hn::BitCast(DI(), hn::Abs(hn::LoadU(d, x + i))));
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(DI(), most));
  return bits >= 0x7F800000 ? std::numeric_limits<float>::quiet_NaN() : std::bit_cast<float>(bits);
}

bool HasMinimum(Storage storage) {
  return storage == Storage::Q4_1 || storage == Storage::Q5_1 || storage == Storage::Q4_K || storage == Storage::Q5_K;
}

void QuantizeRows(const float* x, int64_t ldx, int64_t first, int64_t count, int64_t columns, int planes,
                  Storage storage, const QuantizedRows& out) {
  constexpr float kUnits = 32767;
  constexpr float kLeast = 1e-30f;  // below, a piece counts as zero: its inverse would not be finite
  const int32_t offset = OffsetOf(storage);
  const bool wants_sum = offset != 0 || HasMinimum(storage);
  HWY_ALIGN float rest[kPieceColumns];
  for (int64_t i = first; i < first + count; ++i)
    for (int64_t p = 0; p < columns / kPieceColumns; ++p) {
      const float* from = x + (i - first) * ldx + p * kPieceColumns;
      const float largest = Largest(from);
      const bool zero = largest < kLeast;
      float scale = zero ? 0 : largest / kUnits;
      const float inverse = zero || !(largest == largest) ? 0 : kUnits / largest;
      int64_t at = p * out.rows + i * planes;
      for (int plane = 0; plane < planes; ++plane, ++at) {
        int16_t* q = out.values + at * kPieceColumns;
        const bool last = plane + 1 == planes;
        const float* values = plane ? rest : from;
        const float factor = plane ? 2 * kUnits : inverse;
        const int32_t sum = last ? RoundPiece<false>(values, factor, wants_sum, q, rest)
                                 : RoundPiece<true>(values, factor, wants_sum, q, rest);
        out.scales[at] = scale;
        out.sums[at] = scale * static_cast<float>(sum);
        out.offsets[at] = -offset * sum;
        scale /= 2 * kUnits;
      }
    }
}

// bf16 weights: two columns in a lane's word.
template <int kRows>
HWY_INLINE void GroupBf16(const Byte* group, const float* HWY_RESTRICT x, int64_t ldx, int64_t k, float* c,
                          int64_t ldc) {
  const D d;
  const VU upper = hn::Set(DU(), 0xFFFF0000u);
  for (int lane = 0; lane < static_cast<int>(kGroupRows); lane += Lanes()) {
    V even[kRows], odd[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(d);
    for (int64_t i = 0; i < k; i += 2) {
      hwy::Prefetch(group + 32 * i + kFetchAhead);
      const VU word = Word(group + 32 * i + 4 * lane);
      const V w0 = hn::BitCast(d, hn::ShiftLeft<16>(word)), w1 = hn::BitCast(d, hn::And(word, upper));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        even[r] = hn::MulAdd(hn::Set(d, x[r * ldx + i]), w0, even[r]);
        odd[r] = hn::MulAdd(hn::Set(d, x[r * ldx + i + 1]), w1, odd[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) hn::StoreU(hn::Add(even[r], odd[r]), d, c + r * ldc + lane);
  }
}

void MultiplyGroupBf16(const Byte* group, const float* x, int64_t ldx, int64_t count, int64_t k, float* c,
                       int64_t ldc) {
  for (; count >= 8; count -= 8, x += 8 * ldx, c += 8 * ldc) GroupBf16<8>(group, x, ldx, k, c, ldc);
  for (; count >= 2; count -= 2, x += 2 * ldx, c += 2 * ldc) GroupBf16<2>(group, x, ldx, k, c, ldc);
  if (count == 1) GroupBf16<1>(group, x, ldx, k, c, ldc);
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::gemm {

HWY_EXPORT(MultiplyGroup);
HWY_EXPORT(QuantizeRows);
HWY_EXPORT(MultiplyGroupBf16);

int64_t QuantizedRows::bytes(int64_t rows, int64_t columns) {
  const int64_t cells = (rows * (columns / kPieceColumns) + 15) / 16 * 16;
  return cells * (kPieceColumns * static_cast<int64_t>(sizeof(int16_t)) + 12);
}

void QuantizedRows::place(std::byte* memory, int64_t row_count, int64_t columns) {
  rows = row_count;
  pieces = columns / kPieceColumns;
  const int64_t cells = (rows * pieces + 15) / 16 * 16;
  values = reinterpret_cast<int16_t*>(memory);
  scales = reinterpret_cast<float*>(values + cells * kPieceColumns);
  sums = scales + cells;
  offsets = reinterpret_cast<int32_t*>(sums + cells);
}

void quantize_rows(const float* x, int64_t ldx, int64_t first, int64_t count, int64_t columns, int planes,
                   Storage storage, const QuantizedRows& out) {
  HWY_DYNAMIC_DISPATCH(QuantizeRows)(x, ldx, first, count, columns, planes, storage, out);
}

void multiply_group(Storage storage, const std::byte* group, const QuantizedRows& x, int64_t first, int64_t count,
                    float* c, int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(MultiplyGroup)(storage, reinterpret_cast<const uint8_t*>(group), x, first, count, c, ldc);
}

void fetch_group(const std::byte* group) {
  for (int64_t line = 0; line < kFetchAhead; line += 64) hwy::Prefetch(group + line);
}

void multiply_group_bf16(const std::byte* group, const float* x, int64_t ldx, int64_t count, int64_t k, float* c,
                         int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(MultiplyGroupBf16)(reinterpret_cast<const uint8_t*>(group), x, ldx, count, k, c, ldc);
}

}  // namespace hierarchos::gemm
#endif
