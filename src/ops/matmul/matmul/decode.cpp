#include "ops/matmul/matmul/decode.h"

#include <bit>
#include <cstring>

#include "quant/blocks.h"

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul/decode.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hierarchos::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes: the unit in which every format's bytes lie.
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
using Byte = uint8_t;

HWY_INLINE float Half(const Byte* at) {
  uint16_t h;
  std::memcpy(&h, at, sizeof(h));
  if ((h & 0x7C00) == 0x7C00) return f16_to_f32(h);
  const float magnitude = std::bit_cast<float>(static_cast<uint32_t>(h & 0x7FFF) << 13) * 0x1p112f;
  return h & 0x8000 ? -magnitude : magnitude;
}

HWY_INLINE VI Bytes(const Byte* p) { return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<uint8_t, D>(), p)); }
HWY_INLINE VI SignedBytes(const Byte* p) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<int8_t, D>(), reinterpret_cast<const int8_t*>(p)));
}
HWY_INLINE V Float(VI x) { return hn::ConvertTo(D(), x); }
HWY_INLINE VI Low(VI x) { return hn::And(x, hn::Set(DI(), 15)); }
HWY_INLINE VI High(VI x) { return hn::ShiftRight<4>(x); }
HWY_INLINE int Lanes() { return static_cast<int>(hn::Lanes(D())); }

HWY_INLINE void Q8_0(const Byte* b, float* y) {
  const D d;
  const V scale = hn::Set(d, Half(b));
  for (int i = 0; i < 32; i += Lanes()) hn::StoreU(hn::Mul(scale, Float(SignedBytes(b + 2 + i))), d, y + i);
}

HWY_INLINE void Q4_0(const Byte* b, float* y) {
  const D d;
  const V scale = hn::Set(d, Half(b));
  const VI eight = hn::Set(DI(), 8);
  for (int i = 0; i < 16; i += Lanes()) {
    const VI q = Bytes(b + 2 + i);
    hn::StoreU(hn::Mul(scale, Float(hn::Sub(Low(q), eight))), d, y + i);
    hn::StoreU(hn::Mul(scale, Float(hn::Sub(High(q), eight))), d, y + 16 + i);
  }
}

HWY_INLINE void Q4_1(const Byte* b, float* y) {
  const D d;
  const V scale = hn::Set(d, Half(b)), least = hn::Set(d, Half(b + 2));
  for (int i = 0; i < 16; i += Lanes()) {
    const VI q = Bytes(b + 4 + i);
    hn::StoreU(hn::Add(hn::Mul(scale, Float(Low(q))), least), d, y + i);
    hn::StoreU(hn::Add(hn::Mul(scale, Float(High(q))), least), d, y + 16 + i);
  }
}

// Q4_K and Q5_K: eight sub-blocks of 32 with a six-bit scale and minimum each; the fifth bit of sub-block j is bit j of
// `high`.
template <bool kFive>
HWY_INLINE void Q4OrQ5K(const Byte* b, float* y) {
  const D d;
  const float scale = Half(b), least = Half(b + 2);
  const Byte* packed = b + 4;
  const Byte* high = b + 16;
  const Byte* q = kFive ? b + 48 : b + 16;
  for (int j = 0; j < 8; ++j, y += 32) {
    const int s = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4);
    const int m = j < 4 ? packed[j + 4] & 63 : (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4);
    const V dl = hn::Set(d, scale * static_cast<float>(s)), ml = hn::Set(d, least * static_cast<float>(m));
    const VI bit = hn::Set(DI(), 1 << j), sixteen = hn::Set(DI(), 16);
    for (int i = 0; i < 32; i += Lanes()) {
      const VI byte = Bytes(q + i);
      VI v = j % 2 ? High(byte) : Low(byte);
      if (kFive) v = hn::Add(v, hn::IfThenElseZero(hn::TestBit(Bytes(high + i), bit), sixteen));
      hn::StoreU(hn::Sub(hn::Mul(dl, Float(v)), ml), d, y + i);
    }
    if (j % 2) q += 32;
  }
}

HWY_INLINE void Q6K(const Byte* b, float* y) {
  const D d;
  const Byte *low = b, *high = b + 128;
  const auto* scales = reinterpret_cast<const int8_t*>(b + 192);
  const float scale = Half(b + 208);
  const VI three = hn::Set(DI(), 3), middle = hn::Set(DI(), 32);
  for (int n = 0; n < 256; n += 128, y += 128, low += 64, high += 32, scales += 8)
    for (int half = 0; half < 2; ++half) {
      V of[4];
      for (int part = 0; part < 4; ++part) of[part] = hn::Set(d, scale * static_cast<float>(scales[half + 2 * part]));
      for (int i = 16 * half; i < 16 * half + 16; i += Lanes()) {
        const VI first = Bytes(low + i), second = Bytes(low + 32 + i), top = Bytes(high + i);
        const VI q0 = hn::Or(Low(first), hn::ShiftLeft<4>(hn::And(top, three)));
        const VI q1 = hn::Or(Low(second), hn::ShiftLeft<4>(hn::And(hn::ShiftRight<2>(top), three)));
        const VI q2 = hn::Or(High(first), hn::ShiftLeft<4>(hn::And(hn::ShiftRight<4>(top), three)));
        const VI q3 = hn::Or(High(second), hn::ShiftLeft<4>(hn::ShiftRight<6>(top)));
        hn::StoreU(hn::Mul(of[0], Float(hn::Sub(q0, middle))), d, y + i);
        hn::StoreU(hn::Mul(of[1], Float(hn::Sub(q1, middle))), d, y + 32 + i);
        hn::StoreU(hn::Mul(of[2], Float(hn::Sub(q2, middle))), d, y + 64 + i);
        hn::StoreU(hn::Mul(of[3], Float(hn::Sub(q3, middle))), d, y + 96 + i);
      }
    }
}

// False for a format without vector code.
bool DecodeBlocks(Storage storage, const std::byte* blocks, int64_t count, float* out) {
  const auto* b = reinterpret_cast<const Byte*>(blocks);
  switch (storage) {
    case Storage::Q8_0:
      for (int64_t i = 0; i < count; ++i) Q8_0(b + 34 * i, out + 32 * i);
      return true;
    case Storage::Q4_0:
      for (int64_t i = 0; i < count; ++i) Q4_0(b + 18 * i, out + 32 * i);
      return true;
    case Storage::Q4_1:
      for (int64_t i = 0; i < count; ++i) Q4_1(b + 20 * i, out + 32 * i);
      return true;
    case Storage::Q4_K:
      for (int64_t i = 0; i < count; ++i) Q4OrQ5K<false>(b + 144 * i, out + 256 * i);
      return true;
    case Storage::Q5_K:
      for (int64_t i = 0; i < count; ++i) Q4OrQ5K<true>(b + 176 * i, out + 256 * i);
      return true;
    case Storage::Q6_K:
      for (int64_t i = 0; i < count; ++i) Q6K(b + 210 * i, out + 256 * i);
      return true;
    default:
      return false;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::gemm {

HWY_EXPORT(DecodeBlocks);

void decode_blocks(Storage storage, const std::byte* blocks, int64_t count, float* out) {
  if (HWY_DYNAMIC_DISPATCH(DecodeBlocks)(storage, blocks, count, out)) return;
  dequantize(storage, {blocks, static_cast<size_t>(count * block_bytes(storage))},
             {out, static_cast<size_t>(count * block_elements(storage))});
}

}  // namespace hierarchos::gemm
#endif
