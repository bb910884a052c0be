#include "ops/pointwise/tile.h"

#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pointwise/tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hierarchos::simd {
namespace HWY_NAMESPACE {

// Products and sums round one by one, so that a fused chain gives the bits of its single nodes: no MulAdd here.
class Tile {
 public:
  Tile(const cpu::TileInstr& instr, float* const* buffers, size_t count)
      : out_(buffers[instr.out]), a_(buffers[instr.a]), b_(buffers[instr.b]), c_(buffers[instr.c]), count_(count) {}

  template <class Fn>
  HWY_INLINE void Unary(const Fn& fn) const {
    const F d;
    for (size_t i = 0; i < count_; i += hn::Lanes(d)) hn::StoreU(fn(hn::LoadU(d, a_ + i)), d, out_ + i);
  }
  template <class Fn>
  HWY_INLINE void Binary(const Fn& fn) const {
    const F d;
    for (size_t i = 0; i < count_; i += hn::Lanes(d)) hn::StoreU(fn(hn::LoadU(d, a_ + i), hn::LoadU(d, b_ + i)), d, out_ + i);
  }
  template <class Fn>
  HWY_INLINE void Ternary(const Fn& fn) const {
    const F d;
    for (size_t i = 0; i < count_; i += hn::Lanes(d))
      hn::StoreU(fn(hn::LoadU(d, a_ + i), hn::LoadU(d, b_ + i), hn::LoadU(d, c_ + i)), d, out_ + i);
  }
  // Integers lie in the same buffers.
  template <class Fn>
  HWY_INLINE void UnaryInt(const Fn& fn) const {
    const F d;
    const I di;
    Unary([&](VF a) { return hn::BitCast(d, fn(hn::BitCast(di, a))); });
  }
  template <class Fn>
  HWY_INLINE void BinaryInt(const Fn& fn) const {
    const F d;
    const I di;
    Binary([&](VF a, VF b) { return hn::BitCast(d, fn(hn::BitCast(di, a), hn::BitCast(di, b))); });
  }
  // 0 or 1 from a mask over floats or integers.
  template <class Fn>
  HWY_INLINE void Compare(const Fn& fn) const {
    const F d;
    const I di;
    Binary([&](VF a, VF b) {
      return hn::BitCast(d, hn::IfThenElseZero(hn::RebindMask(di, fn(a, b)), hn::Set(di, 1)));
    });
  }
  template <class Fn>
  HWY_INLINE void CompareInt(const Fn& fn) const {
    const I di;
    BinaryInt([&](VI a, VI b) { return hn::IfThenElseZero(fn(a, b), hn::Set(di, 1)); });
  }

 private:
  float* out_;
  const float* a_;
  const float* b_;
  const float* c_;
  size_t count_;
};

HWY_INLINE VF PickNaN(VF a, VF b, VF other) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, other));
}

void RunFloat(const cpu::TileInstr& instr, const Tile& t) {
  const F d;
  const I di;
  const VF one = Const(1.0f), zero = hn::Zero(d);
  switch (instr.op) {
    case PointwiseOp::Add: t.Binary([](VF a, VF b) { return hn::Add(a, b); }); break;
    case PointwiseOp::Sub: t.Binary([](VF a, VF b) { return hn::Sub(a, b); }); break;
    case PointwiseOp::Mul: t.Binary([](VF a, VF b) { return hn::Mul(a, b); }); break;
    case PointwiseOp::Div: t.Binary([](VF a, VF b) { return hn::Div(a, b); }); break;
    case PointwiseOp::Min:
      t.Binary([](VF a, VF b) { return PickNaN(a, b, hn::IfThenElse(hn::Lt(b, a), b, a)); });
      break;
    case PointwiseOp::Max:
      t.Binary([](VF a, VF b) { return PickNaN(a, b, hn::IfThenElse(hn::Lt(a, b), b, a)); });
      break;
    case PointwiseOp::Neg: t.Unary([](VF a) { return hn::Neg(a); }); break;
    case PointwiseOp::Abs: t.Unary([](VF a) { return hn::Abs(a); }); break;
    case PointwiseOp::Sign:
      t.Unary([&](VF a) {
        const VF negative = hn::IfThenElse(hn::Lt(a, zero), Const(-1.0f), zero);
        return hn::IfThenElse(hn::Gt(a, zero), one, negative);
      });
      break;
    case PointwiseOp::Exp: t.Unary([](VF a) { return Exp(a); }); break;
    case PointwiseOp::Log: t.Unary([](VF a) { return Log(a); }); break;
    case PointwiseOp::Sqrt: t.Unary([](VF a) { return hn::Sqrt(a); }); break;
    case PointwiseOp::Rsqrt: t.Unary([&](VF a) { return hn::Div(one, hn::Sqrt(a)); }); break;
    case PointwiseOp::Recip: t.Unary([&](VF a) { return hn::Div(one, a); }); break;
    case PointwiseOp::Square: t.Unary([](VF a) { return hn::Mul(a, a); }); break;
    case PointwiseOp::Tanh: t.Unary([](VF a) { return Tanh(a); }); break;
    case PointwiseOp::Sigmoid: t.Unary([](VF a) { return Sigmoid(a); }); break;
    case PointwiseOp::Silu: t.Unary([](VF a) { return Silu(a); }); break;
    case PointwiseOp::Gelu: t.Unary([](VF a) { return Gelu(a); }); break;
    case PointwiseOp::GeluTanh: t.Unary([](VF a) { return GeluTanh(a); }); break;
    case PointwiseOp::Relu: t.Unary([&](VF a) { return hn::IfThenElse(hn::Lt(a, zero), zero, a); }); break;
    case PointwiseOp::Erf: t.Unary([](VF a) { return Erf(a); }); break;
    case PointwiseOp::Sin: t.Unary([](VF a) { return Sin(a); }); break;
    case PointwiseOp::Cos: t.Unary([](VF a) { return Cos(a); }); break;
    case PointwiseOp::Softplus: t.Unary([](VF a) { return Softplus(a); }); break;
    case PointwiseOp::Floor: t.Unary([](VF a) { return hn::Floor(a); }); break;
    case PointwiseOp::Lt: t.Compare([](VF a, VF b) { return hn::Lt(a, b); }); break;
    case PointwiseOp::Le: t.Compare([](VF a, VF b) { return hn::Le(a, b); }); break;
    case PointwiseOp::Eq: t.Compare([](VF a, VF b) { return hn::Eq(a, b); }); break;
    case PointwiseOp::Ne: t.Compare([](VF a, VF b) { return hn::Not(hn::Eq(a, b)); }); break;  // Ne is false of NaN on x86
    case PointwiseOp::Select:  // bits are moved, so it serves integers too
      t.Ternary([&](VF a, VF b, VF c) {
        const auto no = hn::RebindMask(d, hn::Eq(hn::BitCast(di, a), hn::Zero(di)));
        return hn::IfThenElse(no, c, b);
      });
      break;
    case PointwiseOp::IsFinite:
      t.Unary([&](VF a) {
        const auto finite = hn::Lt(hn::Abs(a), Const(HUGE_VALF));
        return hn::BitCast(d, hn::IfThenElseZero(hn::RebindMask(di, finite), hn::Set(di, 1)));
      });
      break;
    case PointwiseOp::Clamp:
      t.Ternary([&](VF a, VF low, VF high) {
        const VF above = hn::IfThenElse(hn::Gt(a, high), high, a);
        const VF limited = hn::IfThenElse(hn::Lt(a, low), low, above);
        return hn::IfThenElse(hn::Lt(hn::Abs(a), Const(HUGE_VALF)), limited, a);
      });
      break;
    case PointwiseOp::ToInt: t.Unary([&](VF a) { return hn::BitCast(d, hn::ConvertTo(di, a)); }); break;
    default: break;  // constants are filled in beforehand, to_float takes integers
  }
}

void RunInt(const cpu::TileInstr& instr, const Tile& t) {
  const F d;
  const I di;
  const VI zero = hn::Zero(di), one = hn::Set(di, 1);
  switch (instr.op) {
    case PointwiseOp::Add: t.BinaryInt([](VI a, VI b) { return hn::Add(a, b); }); break;
    case PointwiseOp::Sub: t.BinaryInt([](VI a, VI b) { return hn::Sub(a, b); }); break;
    case PointwiseOp::Mul: t.BinaryInt([](VI a, VI b) { return hn::Mul(a, b); }); break;
    case PointwiseOp::Min: t.BinaryInt([](VI a, VI b) { return hn::Min(a, b); }); break;
    case PointwiseOp::Max: t.BinaryInt([](VI a, VI b) { return hn::Max(a, b); }); break;
    case PointwiseOp::Neg: t.UnaryInt([](VI a) { return hn::Neg(a); }); break;
    case PointwiseOp::Abs: t.UnaryInt([](VI a) { return hn::Abs(a); }); break;
    case PointwiseOp::Sign: t.UnaryInt([&](VI a) { return hn::Max(hn::Min(a, one), hn::Neg(one)); }); break;
    case PointwiseOp::Square: t.UnaryInt([](VI a) { return hn::Mul(a, a); }); break;
    case PointwiseOp::Relu: t.UnaryInt([&](VI a) { return hn::Max(a, zero); }); break;
    case PointwiseOp::Lt: t.CompareInt([](VI a, VI b) { return hn::Lt(a, b); }); break;
    case PointwiseOp::Le: t.CompareInt([](VI a, VI b) { return hn::Not(hn::Lt(b, a)); }); break;
    case PointwiseOp::Eq: t.CompareInt([](VI a, VI b) { return hn::Eq(a, b); }); break;
    case PointwiseOp::Ne: t.CompareInt([](VI a, VI b) { return hn::Ne(a, b); }); break;
    case PointwiseOp::And:
      t.CompareInt([&](VI a, VI b) { return hn::And(hn::Ne(a, zero), hn::Ne(b, zero)); });
      break;
    case PointwiseOp::Or:
      t.CompareInt([&](VI a, VI b) { return hn::Or(hn::Ne(a, zero), hn::Ne(b, zero)); });
      break;
    case PointwiseOp::Not: t.UnaryInt([&](VI a) { return hn::IfThenElseZero(hn::Eq(a, zero), one); }); break;
    case PointwiseOp::Clamp:
      t.Ternary([&](VF a, VF low, VF high) {
        return hn::BitCast(d, hn::Max(hn::Min(hn::BitCast(di, a), hn::BitCast(di, high)), hn::BitCast(di, low)));
      });
      break;
    case PointwiseOp::ToFloat: t.Unary([&](VF a) { return hn::ConvertTo(d, hn::BitCast(di, a)); }); break;
    case PointwiseOp::ToInt: t.Unary([](VF a) { return a; }); break;
    default: break;
  }
}

void RunTile(const cpu::TileInstr* code, size_t instructions, float* const* buffers, int64_t count) {
  for (size_t k = 0; k < instructions; ++k) {
    const Tile tile(code[k], buffers, static_cast<size_t>(count));
    // select's condition is an integer, its values may be either: it only moves bits.
    if (code[k].integer && code[k].op != PointwiseOp::Select)
      RunInt(code[k], tile);
    else
      RunFloat(code[k], tile);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::simd {
HWY_EXPORT(RunTile);
}
namespace hierarchos::cpu {

void run_tile(const TileInstr* code, size_t instructions, float* const* buffers, int64_t count) {
  using namespace hierarchos::simd;
  HWY_DYNAMIC_DISPATCH(RunTile)(code, instructions, buffers, count);
}

}  // namespace hierarchos::cpu
#endif
