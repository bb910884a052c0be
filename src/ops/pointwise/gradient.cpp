#include "ops/pointwise/gradient.h"

#include <cmath>
#include <numbers>

#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

using Op = PointwiseOp;

// Writes the adjoint of an expression behind a copy of it. Operands of the new expression: those of the forward, then
// the gradients that are there. What the gradient does not read is dropped by the canonical form.
class Adjoint {
 public:
  Adjoint(const PointwiseExpr& forward, const std::vector<DType>& dtypes, const std::vector<bool>& wanted, int grads)
      : inputs_(forward.inputs), forward_(forward), integer_(integer_registers(forward, dtypes)) {
    expr_.inputs = inputs_ + grads;
    for (PointwiseInstr instr : forward.code) {
      for (int32_t* r : {&instr.a, &instr.b, &instr.c})
        if (*r >= 0) *r = moved(*r);
      expr_.code.push_back(instr);
    }
    // Registers through which a wanted operand's gradient flows.
    for (int i = 0; i < inputs_; ++i)
      flows_.push_back(wanted[static_cast<size_t>(i)] && !integer_[static_cast<size_t>(i)]);
    for (size_t k = 0; k < forward.code.size(); ++k) {
      const PointwiseInstr& instr = forward.code[k];
      bool any = false;
      for (int32_t r : {instr.a, instr.b, instr.c}) any |= r >= 0 && flows_[static_cast<size_t>(r)];
      flows_.push_back(any && !integer_[static_cast<size_t>(inputs_) + k]);
    }
    adjoint_.assign(flows_.size(), -1);
  }

  void seed(int32_t forward_register, int grad) { give(forward_register, inputs_ + grad); }

  void run() {
    for (size_t k = forward_.code.size(); k-- > 0;) {
      const size_t at = static_cast<size_t>(inputs_) + k;
      if (adjoint_[at] >= 0) pull(forward_.code[k], moved(static_cast<int32_t>(at)), adjoint_[at]);
    }
  }

  // The register that holds an operand's gradient, -1 if absent.
  int32_t of(int input) const { return adjoint_[static_cast<size_t>(input)]; }
  PointwiseExpr& expr() { return expr_; }

 private:
  int32_t moved(int32_t r) const { return r < inputs_ ? r : r - inputs_ + expr_.inputs; }

  int32_t put(Op op, int32_t a, int32_t b = -1, int32_t c = -1) {
    expr_.code.push_back({op, a, b, c, 0});
    return expr_.inputs + static_cast<int32_t>(expr_.code.size()) - 1;
  }
  int32_t constant(double value) {
    expr_.code.push_back({Op::Const, -1, -1, -1, value});
    return expr_.inputs + static_cast<int32_t>(expr_.code.size()) - 1;
  }
  int32_t mul(int32_t a, int32_t b) { return put(Op::Mul, a, b); }
  int32_t add(int32_t a, int32_t b) { return put(Op::Add, a, b); }

  void give(int32_t forward_register, int32_t grad) {
    const auto r = static_cast<size_t>(forward_register);
    if (forward_register < 0 || !flows_[r]) return;
    adjoint_[r] = adjoint_[r] < 0 ? grad : add(adjoint_[r], grad);
  }

  // y = instr(a, b, c); dy is its gradient. Formulas and edge cases are PyTorch's.
  void pull(const PointwiseInstr& instr, int32_t y, int32_t dy) {
    const int32_t a = instr.a < 0 ? -1 : moved(instr.a), b = instr.b < 0 ? -1 : moved(instr.b),
                  c = instr.c < 0 ? -1 : moved(instr.c);
    const auto flows = [&](int32_t r) { return r >= 0 && flows_[static_cast<size_t>(r)]; };
    switch (instr.op) {
      case Op::Add:
        give(instr.a, dy);
        give(instr.b, dy);
        break;
      case Op::Sub:
        give(instr.a, dy);
        if (flows(instr.b)) give(instr.b, put(Op::Neg, dy));
        break;
      case Op::Mul:
        if (flows(instr.a)) give(instr.a, mul(dy, b));
        if (flows(instr.b)) give(instr.b, mul(dy, a));
        break;
      case Op::Div: {
        if (flows(instr.a)) give(instr.a, put(Op::Div, dy, b));
        if (flows(instr.b)) give(instr.b, mul(put(Op::Neg, dy), put(Op::Div, y, b)));
        break;
      }
      case Op::Min:
      case Op::Max: {  // to the operand that was chosen, the first on a tie
        const int32_t second = instr.op == Op::Max ? put(Op::Lt, a, b) : put(Op::Lt, b, a);
        if (flows(instr.a)) give(instr.a, put(Op::Select, second, constant(0), dy));
        if (flows(instr.b)) give(instr.b, put(Op::Select, second, dy, constant(0)));
        break;
      }
      case Op::Neg: give(instr.a, put(Op::Neg, dy)); break;
      case Op::Abs: give(instr.a, mul(dy, put(Op::Sign, a))); break;
      case Op::Exp: give(instr.a, mul(dy, y)); break;
      case Op::Log: give(instr.a, put(Op::Div, dy, a)); break;
      case Op::Sqrt: give(instr.a, put(Op::Div, dy, add(y, y))); break;
      case Op::Rsqrt: give(instr.a, mul(mul(dy, constant(-0.5)), mul(y, put(Op::Square, y)))); break;
      case Op::Recip: give(instr.a, mul(put(Op::Neg, dy), put(Op::Square, y))); break;
      case Op::Square: give(instr.a, mul(dy, add(a, a))); break;
      case Op::Tanh: give(instr.a, mul(dy, put(Op::Sub, constant(1), put(Op::Square, y)))); break;
      case Op::Sigmoid: give(instr.a, mul(dy, mul(put(Op::Sub, constant(1), y), y))); break;
      case Op::Silu: {
        const int32_t s = put(Op::Sigmoid, a), one = constant(1);
        give(instr.a, mul(dy, mul(s, add(one, mul(a, put(Op::Sub, one, s))))));
        break;
      }
      case Op::Gelu: {
        const int32_t erf = put(Op::Erf, mul(a, constant(1 / std::numbers::sqrt2)));
        const int32_t cdf = mul(constant(0.5), add(constant(1), erf));
        const int32_t pdf = mul(constant(std::numbers::inv_sqrtpi / std::numbers::sqrt2),
                                put(Op::Exp, mul(put(Op::Square, a), constant(-0.5))));
        give(instr.a, mul(dy, add(cdf, mul(a, pdf))));
        break;
      }
      case Op::GeluTanh: {
        constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
        const int32_t one = constant(1), half = constant(0.5), square = put(Op::Square, a);
        const int32_t inner = mul(constant(kBeta), add(a, mul(constant(kCubic), mul(square, a))));
        const int32_t t = put(Op::Tanh, inner);
        const int32_t left = mul(half, add(one, t));
        const int32_t slope = mul(constant(kBeta), add(one, mul(constant(3 * kCubic), square)));
        const int32_t right = mul(mul(half, a), mul(put(Op::Sub, one, put(Op::Square, t)), slope));
        give(instr.a, mul(dy, add(left, right)));
        break;
      }
      case Op::Relu: give(instr.a, put(Op::Select, put(Op::Le, a, constant(0)), constant(0), dy)); break;
      case Op::Erf: {
        const int32_t bell = put(Op::Exp, put(Op::Neg, put(Op::Square, a)));
        give(instr.a, mul(dy, mul(constant(2 * std::numbers::inv_sqrtpi), bell)));
        break;
      }
      case Op::Sin: give(instr.a, mul(dy, put(Op::Cos, a))); break;
      case Op::Cos: give(instr.a, mul(put(Op::Neg, dy), put(Op::Sin, a))); break;
      case Op::Softplus:
        give(instr.a, put(Op::Select, put(Op::Lt, constant(20), a), dy, mul(dy, put(Op::Sigmoid, a))));
        break;
      case Op::Select:
        if (flows(instr.b)) give(instr.b, put(Op::Select, a, dy, constant(0)));
        if (flows(instr.c)) give(instr.c, put(Op::Select, a, constant(0), dy));
        break;
      case Op::Clamp: {  // the bounds get none
        if (!flows(instr.a)) break;
        const int32_t inside = put(Op::And, put(Op::Le, b, a), put(Op::Le, a, c));
        const int32_t passes = put(Op::Or, inside, put(Op::Not, put(Op::IsFinite, a)));
        give(instr.a, put(Op::Select, passes, dy, constant(0)));
        break;
      }
      default: break;  // sign and floor have zero slope; the rest gives integers
    }
  }

  int inputs_;
  const PointwiseExpr& forward_;
  std::vector<bool> integer_, flows_;
  std::vector<int32_t> adjoint_;  // of the forward's registers
  PointwiseExpr expr_;
};

// Removes operands that no live instruction reads, so that they need not be kept for the backward.
void drop_unread(PointwiseExpr& expr, std::vector<Value>& operands) {
  const auto first = static_cast<size_t>(expr.inputs);
  std::vector<bool> live(first + expr.code.size(), false);
  for (int32_t r : expr.results) live[static_cast<size_t>(r)] = true;
  for (size_t k = expr.code.size(); k-- > 0;)
    if (live[first + k])
      for (int32_t r : {expr.code[k].a, expr.code[k].b, expr.code[k].c})
        if (r >= 0) live[static_cast<size_t>(r)] = true;
  std::vector<Value> kept;
  std::vector<int32_t> map(first + expr.code.size(), -1);
  for (size_t i = 0; i < first; ++i)
    if (live[i]) {
      map[i] = static_cast<int32_t>(kept.size());
      kept.push_back(operands[i]);
    }
  expr.inputs = static_cast<int>(kept.size());
  std::vector<PointwiseInstr> code;
  for (size_t k = 0; k < expr.code.size(); ++k) {
    if (!live[first + k]) continue;
    PointwiseInstr instr = expr.code[k];
    for (int32_t* r : {&instr.a, &instr.b, &instr.c})
      if (*r >= 0) *r = map[static_cast<size_t>(*r)];
    map[first + k] = expr.inputs + static_cast<int32_t>(code.size());
    code.push_back(instr);
  }
  expr.code = std::move(code);
  for (int32_t& r : expr.results) r = map[static_cast<size_t>(r)];
  operands = std::move(kept);
}

// A gradient over the result's elements, as one of `operand`.
Value fit(Value grad, const Value& operand) { return cast(sum_to(grad, operand.shape()), operand.dtype()); }

}  // namespace

std::vector<std::optional<Value>> pointwise_vjp(VjpContext& c) {
  std::vector<std::optional<Value>> made(c.inputs.size());
  if (c.attrs.i_or("stop", 0)) return made;
  if (c.attrs.i_or("straight", 0)) {
    if (c.wanted[1] && c.grads[0]) made[1] = fit(*c.grads[0], c.inputs[1]);
    return made;
  }

  const auto forward = PointwiseExpr::parse(c.attrs.s("expr"), static_cast<int>(c.inputs.size()));
  std::vector<DType> dtypes;
  for (const Value& v : c.inputs) dtypes.push_back(v.dtype());
  std::vector<Value> operands = c.inputs;
  std::vector<size_t> seeded;
  for (size_t o = 0; o < c.grads.size(); ++o)
    if (c.grads[o] && is_floating(c.outputs[o].dtype())) {
      seeded.push_back(o);
      operands.push_back(*c.grads[o]);
    }
  if (seeded.empty()) return made;
  Adjoint adjoint(forward, dtypes, c.wanted, static_cast<int>(seeded.size()));
  for (size_t g = 0; g < seeded.size(); ++g) adjoint.seed(forward.results[seeded[g]], static_cast<int>(g));
  adjoint.run();

  PointwiseExpr expr = adjoint.expr();
  const Shape shape = c.outputs[0].shape();
  std::vector<size_t> computed;
  std::vector<int64_t> result_dtypes;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const int32_t r = adjoint.of(static_cast<int>(i));
    if (r < 0) continue;
    if (r < expr.inputs) {  // the gradient passes through unchanged
      made[i] = fit(operands[static_cast<size_t>(r)], c.inputs[i]);
      continue;
    }
    computed.push_back(i);
    expr.results.push_back(r);
    // What is still to be summed stays in fp32 until it is.
    const bool whole = c.inputs[i].shape() == shape;
    result_dtypes.push_back(static_cast<int64_t>(whole ? c.inputs[i].dtype() : DType::F32));
  }
  if (computed.empty()) return made;
  drop_unread(expr, operands);
  Attrs attrs{{"expr", expr.to_string()}, {"dtypes", result_dtypes}, {"shape", shape.to_vector()}};
  const std::vector<Value> results = c.graph.emit(pointwise_def(), operands, std::move(attrs));
  for (size_t k = 0; k < computed.size(); ++k) made[computed[k]] = fit(results[k], c.inputs[computed[k]]);
  return made;
}

}  // namespace hierarchos::ops
