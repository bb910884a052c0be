// Elementary functions as SPIR-V: drivers' own may be off by far more than rounding. Within about 4 ulp in fp32.
// Polynomials after Cephes (Moshier), single precision.
#pragma once

#include "ops/pointwise/expr.h"
#include "ops/pointwise/spirv_builder.h"

namespace hierarchos {

class SpirvMath {
 public:
  using Id = SpirvBuilder::Id;
  explicit SpirvMath(SpirvBuilder& b) : b_(b) {}

  // One instruction of a pointwise expression; `integer`: of its first floating-or-integer operand. Registers are f32 or i32.
  Id emit(const PointwiseInstr& instr, Id a, Id b, Id c, bool integer);

  Id add(Id x, Id y) { return exact(129, x, y); }
  Id sub(Id x, Id y) { return exact(131, x, y); }
  Id mul(Id x, Id y) { return exact(133, x, y); }
  Id div(Id x, Id y) { return exact(136, x, y); }
  Id num(float v) { return b_.f32(v); }

 private:
  Id exact(uint32_t opcode, Id x, Id y);  // never contracted
  Id bits(Id x) { return b_.op(124, b_.type_u32(), {x}); }
  Id from_bits(Id x) { return b_.op(124, b_.type_f32(), {x}); }
  Id select(Id condition, Id x, Id y, Id type) { return b_.op(169, type, {condition, x, y}); }
  Id choose(Id condition, Id x, Id y) { return select(condition, x, y, b_.type_f32()); }
  Id less(Id x, Id y) { return b_.op(184, b_.type_bool(), {x, y}); }
  Id magnitude(Id x);  // bits without the sign
  Id is_nan(Id x);
  Id is_finite(Id x);
  Id abs(Id x) { return from_bits(magnitude(x)); }
  // Asked by bits, since a driver may take subnormal numbers for zeros in arithmetic and comparisons.
  Id is_zero(Id x);
  Id is_negative(Id x);  // true for a NaN with the sign bit as well, false for -0
  Id is_tiny(Id x);      // zero or subnormal
  Id tiny_units(Id x);   // |x|·2¹⁴⁹ of such, a normal number or zero
  Id copy_sign(Id size, Id sign);
  Id poly(Id x, std::initializer_list<float> coefficients);  // highest power first
  Id exp(Id x);
  Id log(Id x);
  Id sqrt(Id x, bool reciprocal);
  Id tanh(Id x);
  Id erf(Id x);
  Id sincos(Id x, bool cosine);
  Id as_int(Id boolean) { return select(boolean, b_.i32(1), b_.i32(0), b_.type_i32()); }
  SpirvBuilder& b_;
};

}  // namespace hierarchos
