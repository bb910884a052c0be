#include "quant/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/k_scales.h"

namespace hierarchos {
namespace {

using Byte = uint8_t;

template <typename T>
T read(const Byte* at) {
  T v;
  std::memcpy(&v, at, sizeof(T));
  return v;
}
float half(const Byte* at) { return f16_to_f32(read<uint16_t>(at)); }
void put_half(Byte* at, float v) {
  const uint16_t bits = f32_to_f16(v);
  std::memcpy(at, &bits, sizeof(bits));
}

void q4_0(const Byte* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((b[2 + i] & 15) - 8);
    y[i + 16] = d * static_cast<float>((b[2 + i] >> 4) - 8);
  }
}

void q4_1(const Byte* b, float* y) {
  const float d = half(b), m = half(b + 2);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(b[4 + i] & 15) + m;
    y[i + 16] = d * static_cast<float>(b[4 + i] >> 4) + m;
  }
}

// The fifth bit of element i is bit i of `high`.
void q5(const Byte* q, uint32_t high, float d, float offset, float shift, float* y) {
  for (int i = 0; i < 16; ++i) {
    const auto low = static_cast<int>((q[i] & 15) | (((high >> i) & 1) << 4));
    const auto top = static_cast<int>((q[i] >> 4) | (((high >> (i + 16)) & 1) << 4));
    y[i] = d * (static_cast<float>(low) - shift) + offset;
    y[i + 16] = d * (static_cast<float>(top) - shift) + offset;
  }
}

void q8_0(const Byte* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

void q2_k(const Byte* b, float* y) {
  const Byte *scales = b, *q = b + 16;
  const float d = half(b + 80), m = half(b + 82);
  int s = 0;
  for (int n = 0; n < 256; n += 128, q += 32)
    for (int shift = 0; shift < 8; shift += 2)
      for (int part = 0; part < 2; ++part, ++s) {
        const float dl = d * static_cast<float>(scales[s] & 15), ml = m * static_cast<float>(scales[s] >> 4);
        for (int i = 0; i < 16; ++i) *y++ = dl * static_cast<float>((q[16 * part + i] >> shift) & 3) - ml;
      }
}

void q3_k(const Byte* b, float* y) {
  const Byte *high = b, *q = b + 32, *packed = b + 96;
  const float d = half(b + 108);
  int scales[16];  // six bits each: four in the first eight bytes, two in the last four
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    scales[i] = (low | (((packed[8 + i % 4] >> (2 * (i / 4))) & 3) << 4)) - 32;
  }
  int s = 0;
  for (int n = 0, bit = 0; n < 256; n += 128, q += 32)
    for (int shift = 0; shift < 8; shift += 2, ++bit)
      for (int part = 0; part < 2; ++part, ++s) {
        const float dl = d * static_cast<float>(scales[s]);
        for (int i = 0; i < 16; ++i) {
          const int at = 16 * part + i;
          *y++ = dl * static_cast<float>(((q[at] >> shift) & 3) - ((high[at] >> bit) & 1 ? 0 : 4));
        }
      }
}

void q4_or_5_k(const Byte* b, bool five, float* y) {
  const float d = half(b), m = half(b + 2);
  const Byte* scales = b + 4;
  const Byte* high = b + 16;
  const Byte* q = five ? b + 48 : b + 16;
  for (int j = 0; j < 8; ++j) {
    int scale, min;
    k_scale_min(j, scales, &scale, &min);
    const float dl = d * static_cast<float>(scale), ml = m * static_cast<float>(min);
    for (int i = 0; i < 32; ++i) {
      const int low = j % 2 ? q[i] >> 4 : q[i] & 15;
      const int top = five ? ((high[i] >> j) & 1) << 4 : 0;
      *y++ = dl * static_cast<float>(low + top) - ml;
    }
    if (j % 2) q += 32;
  }
}

void q6_k(const Byte* b, float* y) {
  const Byte *low = b, *high = b + 128;
  const auto* scales = reinterpret_cast<const int8_t*>(b + 192);
  const float d = half(b + 208);
  for (int n = 0; n < 256; n += 128, y += 128, low += 64, high += 32, scales += 8)
    for (int i = 0; i < 32; ++i)
      for (int part = 0; part < 4; ++part) {
        const Byte four = low[i + 32 * (part % 2)];
        const int scale = scales[i / 16 + 2 * part];
        const int q = ((part < 2 ? four & 15 : four >> 4) | (((high[i] >> (2 * part)) & 3) << 4)) - 32;
        y[i + 32 * part] = d * static_cast<float>(scale) * static_cast<float>(q);
      }
}

void iq4_nl(const Byte* b, float* y) {
  constexpr float kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const float d = half(b);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * kValues[b[2 + i] & 15];
    y[i + 16] = d * kValues[b[2 + i] >> 4];
  }
}

void decode(Storage storage, const Byte* b, float* y) {
  switch (storage) {
    case Storage::Q4_0:
      return q4_0(b, y);
    case Storage::Q4_1:
      return q4_1(b, y);
    case Storage::Q5_0:
      return q5(b + 6, read<uint32_t>(b + 2), half(b), 0, 16, y);
    case Storage::Q5_1:
      return q5(b + 8, read<uint32_t>(b + 4), half(b), half(b + 2), 0, y);
    case Storage::Q8_0:
      return q8_0(b, y);
    case Storage::Q2_K:
      return q2_k(b, y);
    case Storage::Q3_K:
      return q3_k(b, y);
    case Storage::Q4_K:
      return q4_or_5_k(b, false, y);
    case Storage::Q5_K:
      return q4_or_5_k(b, true, y);
    case Storage::Q6_K:
      return q6_k(b, y);
    case Storage::IQ4_NL:
      return iq4_nl(b, y);
    case Storage::Plain:
      break;
  }
}

int64_t blocks_in(Storage storage, size_t bytes, size_t values) {
  if (storage == Storage::Plain) throw UserError("plain tensors have no blocks");
  const auto size = static_cast<size_t>(block_bytes(storage)), elements = static_cast<size_t>(block_elements(storage));
  if (bytes % size != 0 || bytes / size * elements != values)
    throw UserError("{} bytes of {} blocks do not hold {} values", bytes, name_of(storage), values);
  return static_cast<int64_t>(bytes / size);
}

// Towards zero, as ggml does. A scale of subnormal size has an infinite inverse, so anything may come here.
Byte nibble(float v) { return static_cast<Byte>(std::isnan(v) ? 8 : static_cast<int>(std::clamp(v, 0.0f, 15.0f))); }
Byte signed_byte(float v) {
  return static_cast<Byte>(std::isnan(v) ? 0 : static_cast<int>(std::clamp(std::round(v), -127.0f, 127.0f)));
}

void check_scale(float scale, const float* x, Storage storage) {
  const bool finite = std::all_of(x, x + 32, [](float v) { return std::isfinite(v); });
  if (!finite || std::isinf(f16_to_f32(f32_to_f16(scale))))
    throw UserError("values that are not finite, or too large for a scale in half precision, cannot become {} blocks",
                    name_of(storage));
}

}  // namespace

void dequantize(Storage storage, std::span<const std::byte> blocks, std::span<float> out) {
  const int64_t count = blocks_in(storage, blocks.size(), out.size());
  const auto* b = reinterpret_cast<const Byte*>(blocks.data());
  const int64_t bytes = block_bytes(storage), elements = block_elements(storage);
  for (int64_t i = 0; i < count; ++i) decode(storage, b + i * bytes, out.data() + i * elements);
}

void quantize(Storage storage, std::span<const float> values, std::span<std::byte> blocks) {
  const int64_t count = blocks_in(storage, blocks.size(), values.size());
  auto* b = reinterpret_cast<Byte*>(blocks.data());
  const float* x = values.data();
  for (int64_t n = 0; n < count; ++n, x += 32, b += block_bytes(storage)) {
    switch (storage) {
      case Storage::Q4_0: {
        float most = 0;  // of largest magnitude, with its sign: it becomes -8
        for (int i = 0; i < 32; ++i)
          if (std::abs(x[i]) > std::abs(most)) most = x[i];
        const float d = most / -8, inverse = d != 0 ? 1 / d : 0;
        check_scale(d, x, storage);
        put_half(b, d);
        for (int i = 0; i < 16; ++i)
          b[2 + i] = static_cast<Byte>(nibble(x[i] * inverse + 8.5f) | (nibble(x[i + 16] * inverse + 8.5f) << 4));
        break;
      }
      case Storage::Q4_1: {
        const auto [low, high] = std::minmax_element(x, x + 32);
        const float d = (*high - *low) / 15, inverse = d != 0 ? 1 / d : 0;
        check_scale(std::max(d, std::abs(*low)), x, storage);
        put_half(b, d);
        put_half(b + 2, *low);
        for (int i = 0; i < 16; ++i)
          b[4 + i] = static_cast<Byte>(nibble((x[i] - *low) * inverse + 0.5f) |
                                       (nibble((x[i + 16] - *low) * inverse + 0.5f) << 4));
        break;
      }
      case Storage::Q8_0: {
        float most = 0;
        for (int i = 0; i < 32; ++i) most = std::max(most, std::abs(x[i]));
        const float d = most / 127, inverse = d != 0 ? 1 / d : 0;
        check_scale(d, x, storage);
        put_half(b, d);
        for (int i = 0; i < 32; ++i) b[2 + i] = signed_byte(x[i] * inverse);
        break;
      }
      default:
        throw UnsupportedError("quantising to {} is not supported", name_of(storage));
    }
  }
}

HostTensor dequantized(const HostTensor& tensor) {
  if (tensor.storage() == Storage::Plain) return tensor;
  HostTensor out(DType::F32, tensor.shape());
  dequantize(tensor.storage(), tensor.bytes(), out.mutable_data<float>());
  return out;
}

}  // namespace hierarchos
