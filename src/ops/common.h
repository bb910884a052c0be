// Small helpers that shape rules of several operators share.
#pragma once

#include <span>

#include "graph/op.h"

namespace hierarchos::ops {

// Floating types that kernels read and write.
inline bool computable(DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }
inline bool computable(const Type& t) { return t.plain() && computable(t.dtype); }

inline void expect_inputs(const InferContext& c, size_t least, size_t most, const char* what) {
  if (c.inputs.size() < least || c.inputs.size() > most) c.fail("takes {}; there are {} operands", what, c.inputs.size());
}

inline void expect_floating(const InferContext& c, size_t input, const char* name) {
  if (!computable(c.inputs[input])) c.fail("{} must be f32, f16 or bf16, it is {}", name, c.inputs[input].to_string());
}

inline void expect(const InferContext& c, size_t input, const char* name, DType dtype, const Shape& shape) {
  const Type& t = c.inputs[input];
  if (t.dtype != dtype || t.shape != shape || !t.plain())
    c.fail("{} must be {}{}, it is {}", name, name_of(dtype), shape.to_string(), t.to_string());
}

inline double bytes_moved(std::span<const Type> inputs, std::span<const Type> outputs) {
  double bytes = 0;
  for (const Type& t : inputs) bytes += static_cast<double>(t.bytes());
  for (const Type& t : outputs) bytes += static_cast<double>(t.bytes());
  return bytes;
}

// The shape without its last axis.
inline Shape leading(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<size_t>(shape.rank() > 0 ? shape.rank() - 1 : 0)));
}

}  // namespace hierarchos::ops
