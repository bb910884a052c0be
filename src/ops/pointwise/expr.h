// The expression of a pointwise node: straight-line code over scalars, evaluated for every element of the result.
//
// Text form, also the node's attribute "expr" and so its identity: statements separated by ';', each naming the next
// register or a result:  "t0=mul(i0,i1);t1=silu(t0);o0=add(t1,i2)".  i<n> are operands, t<n> registers, o<n> results
// (a result is any register or operand). Constants: "t0=const(0.5)". Canonical: registers in order of definition, no
// dead ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace hierarchos {

// Registers are float or integer (I32 and Bool operands are integer; F32, F16, BF16 are float and computed in fp32,
// float64 in the reference). Arithmetic works on both; transcendental operations on floats only; comparisons give
// integers 0 and 1.
enum class PointwiseOp : uint8_t {
  Const,    // immediate (float)
  IConst,   // immediate (integer)
  Add, Sub, Mul, Div, Min, Max,   // min, max: a NaN operand gives NaN
  Neg, Abs, Sign,                 // sign(0) = 0
  Exp, Log, Sqrt, Rsqrt, Recip, Square, Tanh, Sigmoid, Silu, Gelu, GeluTanh, Relu, Erf, Sin, Cos, Softplus,
  Floor,
  Lt, Le, Eq, Ne, And, Or, Not,
  Select,    // select(c, a, b): c ≠ 0 ? a : b, without evaluating into NaN from the other
  IsFinite,  // 1 or 0
  Clamp,     // clamp(x, lo, hi): finite x limited; NaN and ±Inf pass through (Hierarchos' fclamp)
  ToFloat, ToInt,  // integer → float; float → integer, toward zero
};

struct PointwiseInstr {
  PointwiseOp op;
  int32_t a = -1, b = -1, c = -1;  // operands: ≥ 0 register index; see PointwiseExpr::operands_first
  double value = 0;                // of constants
};

// Registers 0 … inputs-1 are the operands; register inputs+k is the result of code[k].
struct PointwiseExpr {
  int inputs = 0;
  std::vector<PointwiseInstr> code;
  std::vector<int32_t> results;  // registers

  static PointwiseExpr parse(std::string_view text, int inputs);  // throws UserError
  std::string to_string() const;                                  // canonical
};

std::string_view name_of(PointwiseOp op);
int arity_of(PointwiseOp op);
// Whether each register is an integer, given the operands' types. Throws UserError on a mix that has no meaning.
std::vector<bool> integer_registers(const PointwiseExpr& expr, const std::vector<DType>& inputs);
// One element, in float64: the reference's meaning of every operation. `results` are filled.
void evaluate(const PointwiseExpr& expr, const double* inputs, double* results);

}  // namespace hierarchos
