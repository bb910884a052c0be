// Element types and storage forms of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hierarchos {

enum class DType : uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool };

// How the elements of a tensor lie in memory. Plain: row-major elements of its DType (or strided views of such).
// The Q* forms are GGUF's blocks along the last dimension; the logical DType of such a tensor is F32.
// Prepared: rewritten by one kernel for its own use (Type::layout names the layout).
enum class Storage : uint8_t {
  Plain,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
};

size_t size_of(DType dtype);                // bytes an element
std::string_view name_of(DType dtype);      // "f32", "bf16", "i32" …
std::string_view name_of(Storage storage);  // "plain", "q4_1" …
bool is_floating(DType dtype);
bool is_integer(DType dtype);  // Bool counts as an integer type

int64_t block_elements(Storage storage);  // elements a block; 1 for Plain
int64_t block_bytes(Storage storage);     // bytes a block; 0 for Plain (the DType decides)

// Rounding of single values, to nearest even. NaN stays NaN.
uint16_t f32_to_f16(float value);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
float bf16_to_f32(uint16_t bits);
// Rounds a double to what `dtype` can hold (floating types only; integers are returned unchanged).
double round_to(DType dtype, double value);

}  // namespace hierarchos
