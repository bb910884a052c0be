#include "ops/pointwise/spirv_math.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace hierarchos {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kNoContraction = 42;

}  // namespace

SpirvMath::Id SpirvMath::exact(uint32_t opcode, Id x, Id y) {
  const Id id = b_.op(opcode, b_.type_f32(), {x, y});
  b_.decorate(id, {kNoContraction});
  return id;
}

SpirvMath::Id SpirvMath::magnitude(Id x) { return b_.op(199, b_.type_u32(), {bits(x), b_.u32(0x7FFFFFFF)}); }
// By bits: a driver may assume that there are no NaNs.
SpirvMath::Id SpirvMath::is_nan(Id x) { return b_.op(172, b_.type_bool(), {magnitude(x), b_.u32(0x7F800000)}); }
SpirvMath::Id SpirvMath::is_finite(Id x) { return b_.op(176, b_.type_bool(), {magnitude(x), b_.u32(0x7F800000)}); }

SpirvMath::Id SpirvMath::is_zero(Id x) { return b_.op(170, b_.type_bool(), {magnitude(x), b_.u32(0)}); }
SpirvMath::Id SpirvMath::is_negative(Id x) { return b_.op(172, b_.type_bool(), {bits(x), b_.u32(0x80000000)}); }
SpirvMath::Id SpirvMath::is_tiny(Id x) { return b_.op(176, b_.type_bool(), {magnitude(x), b_.u32(0x00800000)}); }
SpirvMath::Id SpirvMath::tiny_units(Id x) { return b_.op(112, b_.type_f32(), {magnitude(x)}); }

SpirvMath::Id SpirvMath::copy_sign(Id size, Id sign) {
  const Id s = b_.op(199, b_.type_u32(), {bits(sign), b_.u32(0x80000000)});
  return from_bits(b_.op(197, b_.type_u32(), {magnitude(size), s}));
}

SpirvMath::Id SpirvMath::poly(Id x, std::initializer_list<float> coefficients) {
  Id sum = 0;
  for (float c : coefficients) sum = sum == 0 ? num(c) : add(mul(sum, x), num(c));
  return sum;
}

SpirvMath::Id SpirvMath::exp(Id x) {
  const Id limited = choose(less(x, num(-104)), num(-104), choose(less(num(89), x), num(89), x));
  const Id n = b_.ext(8, b_.type_f32(), {add(mul(limited, num(1.44269504088896341f)), num(0.5f))});  // floor
  Id r = sub(limited, mul(n, num(0.693359375f)));
  r = sub(r, mul(n, num(-2.12194440e-4f)));
  const Id p = poly(r, {1.f / 5040, 1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 0.5f, 1, 1});
  // 2ⁿ in two steps, since n reaches beyond the exponents of normal numbers.
  const Id i = b_.op(110, b_.type_i32(), {n});
  const Id half = b_.op(195, b_.type_i32(), {i, b_.i32(1)});
  const Id rest = b_.op(130, b_.type_i32(), {i, half});
  const auto power = [&](Id e) {
    return b_.op(124, b_.type_f32(), {b_.op(196, b_.type_i32(), {b_.op(128, b_.type_i32(), {e, b_.i32(127)}), b_.i32(23)})});
  };
  const Id y = mul(mul(p, power(half)), power(rest));
  return choose(is_nan(x), x, choose(less(num(88.7228394f), x), num(kInf), y));
}

SpirvMath::Id SpirvMath::log(Id x) {
  const Id tiny = is_tiny(x);
  const Id scaled = choose(tiny, tiny_units(x), x);
  const Id u = bits(scaled);
  const Id exponent = b_.op(130, b_.type_i32(), {b_.op(124, b_.type_i32(), {b_.op(194, b_.type_u32(), {u, b_.u32(23)})}), b_.i32(126)});
  // m in [0.5, 1), then in [√½, √2).
  Id m = from_bits(b_.op(197, b_.type_u32(), {b_.op(199, b_.type_u32(), {u, b_.u32(0x007FFFFF)}), b_.u32(0x3F000000)}));
  const Id low = less(m, num(0.707106781186547524f));
  Id e = b_.op(111, b_.type_f32(), {exponent});
  e = sub(e, choose(low, num(1), num(0)));
  e = sub(e, choose(tiny, num(149), num(0)));
  m = choose(low, add(m, m), m);
  const Id f = sub(m, num(1)), z = mul(f, f);
  Id y = poly(f, {7.0376836292E-2f, -1.1514610310E-1f, 1.1676998740E-1f, -1.2420140846E-1f, 1.4249322787E-1f, -1.6668057665E-1f,
                  2.0000714765E-1f, -2.4999993993E-1f, 3.3333331174E-1f});
  y = mul(mul(y, f), z);
  y = add(y, mul(e, num(-2.12194440e-4f)));
  y = sub(y, mul(num(0.5f), z));
  y = add(add(f, y), mul(e, num(0.693359375f)));
  y = choose(less(num(std::numeric_limits<float>::max()), x), x, y);  // +inf
  y = choose(is_zero(x), num(-kInf), y);
  y = choose(is_negative(x), num(kNaN), y);
  return choose(is_nan(x), x, y);
}

// The root of 2⁻¹⁴⁹·u is that of 2u, times 2⁻⁷⁵.
SpirvMath::Id SpirvMath::sqrt(Id x, bool reciprocal) {
  const Id tiny = is_tiny(x), units = tiny_units(x);
  const Id root = b_.ext(31, b_.type_f32(), {choose(tiny, add(units, units), x)});
  const Id scale = choose(tiny, num(reciprocal ? 0x1p75f : 0x1p-75f), num(1));
  Id y = reciprocal ? div(scale, root) : mul(root, scale);
  if (reciprocal) y = choose(is_zero(x), copy_sign(num(kInf), x), y);
  else y = choose(is_zero(x), x, y);
  y = choose(is_negative(x), num(kNaN), y);
  return choose(is_nan(x), x, y);
}

SpirvMath::Id SpirvMath::tanh(Id x) {
  const Id a = abs(x), z = mul(x, x);
  const Id near = add(mul(mul(poly(z, {-5.70498872745E-3f, 2.06390887954E-2f, -5.37397155531E-2f, 1.33314422036E-1f, -3.33332819422E-1f}), z), x), x);
  const Id far = sub(num(1), div(num(2), add(exp(add(a, a)), num(1))));
  const Id y = choose(less(a, num(0.625f)), near, copy_sign(choose(less(num(9.1f), a), num(1), far), x));
  return choose(is_nan(x), x, y);
}

SpirvMath::Id SpirvMath::erf(Id x) {
  const Id a = abs(x), z = mul(x, x);
  const Id near = mul(x, poly(z, {7.853861353153693E-5f, -8.010193625184903E-4f, 5.188327685732524E-3f, -2.685381193529856E-2f,
                                  1.128358514861418E-1f, -3.761262582423300E-1f, 1.128379165726710E+0f}));
  const Id q = div(num(1), a), y = mul(q, q);
  const Id p = poly(y, {2.326819970068386E-2f, -1.387039388740657E-1f, 3.687424674597105E-1f, -5.824733027278666E-1f, 6.210004621745983E-1f,
                        -4.944515323274145E-1f, 3.404879937665872E-1f, -2.741127028184656E-1f, 5.638259427386472E-1f});
  const Id r = poly(y, {-1.047766399936249E+1f, 1.297719955372516E+1f, -7.495518717768503E+0f, 2.921019019210786E+0f, -1.015265279202700E+0f,
                        4.218463358204948E-1f, -2.820767439740514E-1f, 5.641895067754075E-1f});
  const Id tail = mul(mul(exp(sub(num(0), z)), q), choose(less(a, num(2)), p, r));
  const Id far = copy_sign(choose(less(num(4), a), num(1), sub(num(1), tail)), x);
  return choose(is_nan(x), x, choose(less(a, num(1)), near, far));
}

SpirvMath::Id SpirvMath::sincos(Id x, bool cosine) {
  // Good to about |x| = 8192, where the three parts of π/2 run out.
  const Id j = b_.ext(8, b_.type_f32(), {add(mul(x, num(0.636619772367581343f)), num(0.5f))});
  Id r = sub(x, mul(j, num(1.5703125f)));
  r = sub(r, mul(j, num(4.837512969970703125e-4f)));
  r = sub(r, mul(j, num(7.549789948768648e-8f)));
  const Id z = mul(r, r);
  const Id s = add(mul(mul(poly(z, {-1.9515295891E-4f, 8.3321608736E-3f, -1.6666654611E-1f}), z), r), r);
  Id c = mul(mul(poly(z, {2.443315711809948E-005f, -1.388731625493765E-003f, 4.166664568298827E-002f}), z), z);
  c = add(sub(c, mul(num(0.5f), z)), num(1));
  Id quadrant = b_.op(110, b_.type_i32(), {j});
  if (cosine) quadrant = b_.op(128, b_.type_i32(), {quadrant, b_.i32(1)});
  const auto bit = [&](int32_t mask) {
    return b_.op(171, b_.type_bool(), {b_.op(199, b_.type_i32(), {quadrant, b_.i32(mask)}), b_.i32(0)});
  };
  const Id y = choose(bit(1), c, s);
  const Id signed_y = choose(bit(2), sub(num(0), y), y);
  return choose(is_finite(x), signed_y, num(kNaN));
}

SpirvMath::Id SpirvMath::emit(const PointwiseInstr& instr, Id a, Id b, Id c, bool integer) {
  const Id f = b_.type_f32(), i = b_.type_i32(), boolean = b_.type_bool();
  const auto truth = [&](Id v) { return b_.op(171, boolean, {v, b_.i32(0)}); };
  const auto sigmoid = [&](Id x) { return div(num(1), add(num(1), exp(sub(num(0), x)))); };
  const auto compare = [&](uint32_t on_float, uint32_t on_int) { return as_int(b_.op(integer ? on_int : on_float, boolean, {a, b})); };
  switch (instr.op) {
    case PointwiseOp::Const: return num(static_cast<float>(instr.value));
    case PointwiseOp::IConst: return b_.i32(static_cast<int32_t>(instr.value));
    case PointwiseOp::Add: return integer ? b_.op(128, i, {a, b}) : add(a, b);
    case PointwiseOp::Sub: return integer ? b_.op(130, i, {a, b}) : sub(a, b);
    case PointwiseOp::Mul: return integer ? b_.op(132, i, {a, b}) : mul(a, b);
    case PointwiseOp::Div: return integer ? b_.op(135, i, {a, b}) : div(a, b);
    case PointwiseOp::Min:
      if (integer) return b_.ext(39, i, {a, b});
      return choose(is_nan(a), a, choose(is_nan(b), b, choose(less(b, a), b, a)));
    case PointwiseOp::Max:
      if (integer) return b_.ext(42, i, {a, b});
      return choose(is_nan(a), a, choose(is_nan(b), b, choose(less(a, b), b, a)));
    case PointwiseOp::Neg:
      if (integer) return b_.op(126, i, {a});
      return from_bits(b_.op(198, b_.type_u32(), {bits(a), b_.u32(0x80000000)}));
    case PointwiseOp::Abs: return integer ? b_.ext(5, i, {a}) : abs(a);
    case PointwiseOp::Sign: {
      if (integer) return b_.ext(7, i, {a});
      return choose(is_zero(a), num(0), choose(is_nan(a), num(0), copy_sign(num(1), a)));
    }
    case PointwiseOp::Exp: return exp(a);
    case PointwiseOp::Log: return log(a);
    case PointwiseOp::Sqrt: return sqrt(a, false);
    case PointwiseOp::Rsqrt: return sqrt(a, true);
    case PointwiseOp::Recip: return div(num(1), a);
    case PointwiseOp::Square: return integer ? b_.op(132, i, {a, a}) : mul(a, a);
    case PointwiseOp::Tanh: return tanh(a);
    case PointwiseOp::Sigmoid: return sigmoid(a);
    case PointwiseOp::Silu: return div(a, add(num(1), exp(sub(num(0), a))));
    case PointwiseOp::Gelu: return mul(mul(num(0.5f), a), add(num(1), erf(mul(a, num(0.707106781186547524f)))));
    case PointwiseOp::GeluTanh: {
      const Id cube = mul(mul(mul(num(0.044715f), a), a), a);
      return mul(mul(num(0.5f), a), add(num(1), tanh(mul(num(0.797884560802865356f), add(a, cube)))));
    }
    case PointwiseOp::Relu: return integer ? b_.ext(42, i, {a, b_.i32(0)}) : choose(is_nan(a), a, choose(less(a, num(0)), num(0), a));
    case PointwiseOp::Erf: return erf(a);
    case PointwiseOp::Sin: return sincos(a, false);
    case PointwiseOp::Cos: return sincos(a, true);
    case PointwiseOp::Softplus: {
      // log(1 + e) loses e's low bits; what was lost is added back. For e below 2⁻²⁴ this is e.
      const Id e = exp(a), u = add(num(1), e);
      const Id y = add(log(u), div(sub(e, sub(u, num(1))), u));
      return choose(less(num(20), a), a, y);
    }
    case PointwiseOp::Floor: return integer ? a : b_.ext(8, f, {a});
    // A driver may turn a comparison and a select into its minimum, which drops NaNs; asking for them by bits stops it.
    case PointwiseOp::Lt:
    case PointwiseOp::Le: {
      const bool strict = instr.op == PointwiseOp::Lt;
      if (integer) return compare(184, strict ? 177 : 179);
      const Id nan = b_.op(166, boolean, {is_nan(a), is_nan(b)});
      return as_int(b_.op(167, boolean, {b_.op(168, boolean, {nan}), b_.op(strict ? 184 : 188, boolean, {a, b})}));
    }
    case PointwiseOp::Eq: return compare(180, 170);
    case PointwiseOp::Ne: return compare(183, 171);
    case PointwiseOp::And: return as_int(b_.op(167, boolean, {truth(a), truth(b)}));
    case PointwiseOp::Or: return as_int(b_.op(166, boolean, {truth(a), truth(b)}));
    case PointwiseOp::Not: return as_int(b_.op(170, boolean, {a, b_.i32(0)}));
    case PointwiseOp::Select: return select(truth(a), b, c, integer ? i : f);
    case PointwiseOp::IsFinite: return integer ? b_.i32(1) : as_int(is_finite(a));
    case PointwiseOp::Clamp:
      if (integer) return b_.ext(45, i, {a, b, c});
      return choose(is_finite(a), choose(less(a, b), b, choose(less(c, a), c, a)), a);
    case PointwiseOp::ToFloat: return integer ? b_.op(111, f, {a}) : a;
    case PointwiseOp::ToInt: return integer ? a : b_.op(110, i, {a});
  }
  throw UnsupportedError("pointwise operation {} on Vulkan", name_of(instr.op));
}

}  // namespace hierarchos
