#include "tensor/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace hierarchos {

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::I64:
      return 8;
    case DType::F32:
    case DType::I32:
      return 4;
    case DType::F16:
    case DType::BF16:
    case DType::I16:
      return 2;
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      return 1;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"};
  return names[static_cast<size_t>(dtype)];
}

namespace {

struct BlockForm {
  std::string_view name;
  int64_t elements, bytes;
};
// In the order of Storage. Sizes are GGUF's.
constexpr BlockForm kForms[] = {{"plain", 1, 0},    {"q4_0", 32, 18},   {"q4_1", 32, 20},   {"q5_0", 32, 22},
                                {"q5_1", 32, 24},   {"q8_0", 32, 34},   {"q2_k", 256, 84},  {"q3_k", 256, 110},
                                {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210}, {"iq4_nl", 32, 18}};

}  // namespace

std::string_view name_of(Storage storage) { return kForms[static_cast<size_t>(storage)].name; }
int64_t block_elements(Storage storage) { return kForms[static_cast<size_t>(storage)].elements; }
int64_t block_bytes(Storage storage) { return kForms[static_cast<size_t>(storage)].bytes; }

bool is_floating(DType d) { return d == DType::F64 || d == DType::F32 || d == DType::F16 || d == DType::BF16; }
bool is_integer(DType d) { return !is_floating(d); }

uint16_t f32_to_f16(float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((x >> 16) & 0x8000);
  x &= 0x7FFFFFFF;
  if (x > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00 | ((x >> 13) & 0x1FF));  // a quiet NaN
  if (x >= 0x477FF000) return sign | 0x7C00;                                              // 65520 and above: infinity
  if (x < 0x38800000) {  // below 2^-14: the sum's last place is a subnormal half's, so the adder rounds
    const float sum = std::bit_cast<float>(x) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f)));
  }
  x += 0xFFF + ((x >> 13) & 1) - (112u << 23);
  return static_cast<uint16_t>(sign | (x >> 13));
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    const float v = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

double round_to(DType dtype, double v) {
  if (!std::isfinite(v)) return v;
  int digits, min_exponent;
  double limit;
  switch (dtype) {
    case DType::F32:
      return static_cast<double>(static_cast<float>(v));
    case DType::F16:
      digits = 11;
      min_exponent = -13;
      limit = 65520.0;
      break;
    case DType::BF16:
      digits = 8;
      min_exponent = -125;
      limit = 0x1.FFp127;
      break;
    default:
      return v;
  }
  if (std::abs(v) >= limit) return std::copysign(std::numeric_limits<double>::infinity(), v);
  int exponent;
  std::frexp(v, &exponent);
  const int shift = digits - std::max(exponent, min_exponent);
  return std::ldexp(std::nearbyint(std::ldexp(v, shift)), -shift);
}

}  // namespace hierarchos
