#include "ops/pointwise/pointwise.h"

#include <algorithm>
#include <unordered_map>

#include "ops/common.h"
#include "ops/pointwise/gradient.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

bool broadcast_into(Shape& shape, const Shape& with) {
  const int rank = std::max(shape.rank(), with.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  for (int a = 1; a <= rank; ++a) {
    const int64_t x = a <= shape.rank() ? shape[shape.rank() - a] : 1;
    const int64_t y = a <= with.rank() ? with[with.rank() - a] : 1;
    if (x != y && x != 1 && y != 1) return false;
    dims[static_cast<size_t>(rank - a)] = x == 1 ? y : x;
  }
  shape = Shape(dims);
  return true;
}

std::vector<Type> infer(const InferContext& c) {
  const PointwiseExpr expr = PointwiseExpr::parse(c.attrs.s("expr"), static_cast<int>(c.inputs.size()));
  std::vector<DType> dtypes;
  Shape shape;
  for (const Type& t : c.inputs) {
    if (!t.plain()) c.fail("operands must be plain, one is {}; use dequantize first", t.to_string());
    if (!broadcast_into(shape, t.shape)) {
      std::string shapes;
      for (const Type& u : c.inputs) shapes += (shapes.empty() ? "" : ", ") + u.shape.to_string();
      c.fail("shapes {} do not broadcast", shapes);
    }
    dtypes.push_back(t.dtype);
  }
  if (c.attrs.has("shape")) {
    const Shape wanted(c.attrs.ints("shape"));
    if (!broadcast_into(shape, wanted) || shape != wanted)
      c.fail("operands do not broadcast to the result's shape {}", wanted.to_string());
  } else if (c.inputs.empty()) {
    c.fail("an expression without operands needs a shape");
  }
  if (c.attrs.i_or("straight", 0) && (c.inputs.size() != 2 || c.inputs[0].shape != shape))
    c.fail("a straight-through value has two operands, the second broadcast to the first");

  const std::vector<bool> integer = integer_registers(expr, dtypes);
  const std::vector<int64_t>& result_dtypes = c.attrs.ints("dtypes");
  if (result_dtypes.size() != expr.results.size())
    c.fail("{} result types for {} results", result_dtypes.size(), expr.results.size());
  std::vector<Type> out;
  for (size_t o = 0; o < expr.results.size(); ++o) {
    const auto dtype = static_cast<DType>(result_dtypes[o]);
    const bool known = computable(dtype) || dtype == DType::I32 || dtype == DType::Bool;
    if (!known) c.fail("a result cannot be {}: f32, f16, bf16, i32 and bool are known", name_of(dtype));
    if (is_integer(dtype) != integer[static_cast<size_t>(expr.results[o])])
      c.fail("result {} is {}, its value is {}", o, name_of(dtype), is_integer(dtype) ? "floating" : "an integer");
    out.emplace_back(dtype, shape);
  }
  return out;
}

Cost cost(const Attrs& attrs, std::span<const Type> inputs, std::span<const Type> outputs) {
  const auto expr = PointwiseExpr::parse(attrs.s("expr"), static_cast<int>(inputs.size()));
  const auto elements = static_cast<double>(outputs[0].shape.elements());
  return {elements * static_cast<double>(expr.code.size()), bytes_moved(inputs, outputs)};
}

// A large operand whose last axis is far apart in memory (a transpose) is cheaper to copy in blocks first.
bool accepts_strides(const Attrs&, int, const Shape& shape, std::span<const int64_t> strides) {
  constexpr int64_t kLarge = 65536;
  for (int a = shape.rank() - 1; a >= 0; --a)
    if (shape[a] > 1) return strides[static_cast<size_t>(a)] <= 1 || shape.elements() < kLarge;
  return true;
}

// The type of a result with floating value: the operands' common one, fp32 where they differ.
DType promoted(std::span<const Value> operands) {
  std::optional<DType> dtype;
  for (const Value& v : operands) {
    if (!is_floating(v.dtype())) continue;
    dtype = !dtype || *dtype == v.dtype() ? v.dtype() : DType::F32;
  }
  return dtype.value_or(DType::F32);
}

Value emit(const PointwiseExpr& expr, std::vector<Value> operands, Attrs attrs = {}) {
  std::vector<DType> dtypes;
  for (const Value& v : operands) dtypes.push_back(v.dtype());
  DType dtype = promoted(operands);
  // A misfit is reported by the shape rule, with operator, scope and operands.
  try {
    if (integer_registers(expr, dtypes)[static_cast<size_t>(expr.results[0])]) dtype = DType::I32;
  } catch (const UserError&) {
  }
  attrs.set("expr", expr.to_string()).set("dtypes", std::vector<int64_t>{static_cast<int64_t>(dtype)});
  Graph& graph = operands[0].graph();
  return graph.emit1(pointwise_def(), std::move(operands), std::move(attrs));
}

PointwiseExpr single(PointwiseOp op, int operands) {
  PointwiseExpr expr;
  expr.inputs = operands;
  expr.code.push_back({op, operands > 0 ? 0 : -1, operands > 1 ? 1 : -1, operands > 2 ? 2 : -1, 0});
  expr.results = {operands};
  return expr;
}

PointwiseExpr identity(int operands) {
  PointwiseExpr expr;
  expr.inputs = operands;
  expr.results = {0};
  return expr;
}

PointwiseInstr constant(Value like, double value) {
  PointwiseInstr instr{PointwiseOp::Const};
  instr.value = value;
  if (is_integer(like.dtype())) {
    if (value != static_cast<double>(static_cast<int32_t>(value)))
      throw UserError("{}: {} is no 32-bit integer, its other operand is", like.graph().scope(), value);
    instr.op = PointwiseOp::IConst;
  }
  return instr;
}

Value with_constant(PointwiseOp op, Value a, double b) {
  PointwiseExpr expr;
  expr.inputs = 1;
  expr.code = {constant(a, b), {op, 0, 1}};
  expr.results = {2};
  return emit(expr, {a});
}

Value emit_cast(Value x, DType dtype) { return cast(x, dtype); }
[[maybe_unused]] const bool cast_installed = [] {
  Graph::set_cast(emit_cast);
  return true;
}();

}  // namespace

const OpDef& pointwise_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "pointwise";
    d.kind = OpKind::Pointwise;
    d.infer = infer;
    d.vjp = pointwise_vjp;
    d.accepts_strides = accepts_strides;
    d.cost = cost;
    d.recompute = true;
    return d;
  }();
  return def;
}

Value unary(PointwiseOp op, Value x) { return emit(single(op, 1), {x}); }
Value binary(PointwiseOp op, Value a, Value b) { return emit(single(op, 2), {a, b}); }
Value select(Value condition, Value a, Value b) { return emit(single(PointwiseOp::Select, 3), {condition, a, b}); }

Value add(Value a, Value b) { return binary(PointwiseOp::Add, a, b); }
Value sub(Value a, Value b) { return binary(PointwiseOp::Sub, a, b); }
Value mul(Value a, Value b) { return binary(PointwiseOp::Mul, a, b); }
Value div(Value a, Value b) { return binary(PointwiseOp::Div, a, b); }
Value add(Value a, double b) { return with_constant(PointwiseOp::Add, a, b); }
Value mul(Value a, double b) { return with_constant(PointwiseOp::Mul, a, b); }
Value neg(Value x) { return unary(PointwiseOp::Neg, x); }
Value exp(Value x) { return unary(PointwiseOp::Exp, x); }
Value log(Value x) { return unary(PointwiseOp::Log, x); }
Value sqrt(Value x) { return unary(PointwiseOp::Sqrt, x); }
Value rsqrt(Value x) { return unary(PointwiseOp::Rsqrt, x); }
Value square(Value x) { return unary(PointwiseOp::Square, x); }
Value tanh(Value x) { return unary(PointwiseOp::Tanh, x); }
Value sigmoid(Value x) { return unary(PointwiseOp::Sigmoid, x); }
Value silu(Value x) { return unary(PointwiseOp::Silu, x); }
Value gelu(Value x) { return unary(PointwiseOp::Gelu, x); }
Value gelu_tanh(Value x) { return unary(PointwiseOp::GeluTanh, x); }
Value relu(Value x) { return unary(PointwiseOp::Relu, x); }
Value softplus(Value x) { return unary(PointwiseOp::Softplus, x); }
Value less(Value a, Value b) { return binary(PointwiseOp::Lt, a, b); }

Value clamp(Value x, double low, double high) {
  PointwiseExpr expr;
  expr.inputs = 1;
  expr.code = {constant(x, low), constant(x, high), {PointwiseOp::Clamp, 0, 1, 2}};
  expr.results = {3};
  return emit(expr, {x});
}

Value cast(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  PointwiseExpr expr = identity(1);
  if (is_integer(x.dtype()) && is_floating(dtype)) expr = single(PointwiseOp::ToFloat, 1);
  if (is_floating(x.dtype()) && is_integer(dtype)) expr = single(PointwiseOp::ToInt, 1);
  if (dtype == DType::Bool) {
    PointwiseInstr zero = constant(x, 0);
    expr.code = {zero, {PointwiseOp::Ne, 0, 1}};
    expr.results = {2};
  }
  Attrs attrs{{"expr", expr.to_string()}, {"dtypes", std::vector<int64_t>{static_cast<int64_t>(dtype)}}};
  return x.graph().emit1(pointwise_def(), {x}, std::move(attrs));
}

Value full(Graph& graph, Shape shape, double value, DType dtype) {
  PointwiseExpr expr = single(is_integer(dtype) ? PointwiseOp::IConst : PointwiseOp::Const, 0);
  expr.code[0].value = value;
  Attrs attrs{{"expr", expr.to_string()},
              {"dtypes", std::vector<int64_t>{static_cast<int64_t>(dtype)}},
              {"shape", shape.to_vector()}};
  return graph.emit1(pointwise_def(), {}, std::move(attrs));
}

Value zeros(Graph& graph, const Type& type) { return full(graph, type.shape, 0, type.dtype); }

Value straight_through(Value a, Value b) {
  Attrs attrs{{"expr", identity(2).to_string()},
              {"dtypes", std::vector<int64_t>{static_cast<int64_t>(a.dtype())}},
              {"straight", int64_t{1}}};
  return a.graph().emit1(pointwise_def(), {a, b}, std::move(attrs));
}

Value stop_gradient(Value x) {
  Attrs attrs{{"expr", identity(1).to_string()},
              {"dtypes", std::vector<int64_t>{static_cast<int64_t>(x.dtype())}},
              {"stop", int64_t{1}}};
  return x.graph().emit1(pointwise_def(), {x}, std::move(attrs));
}

Value sum_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Shape from = x.shape();
  const int lead = from.rank() - shape.rank();
  const auto summed = [&](int a) { return a < lead || (shape[a - lead] == 1 && from[a] != 1); };
  const auto neutral = [&](int a) { return from[a] == 1; };  // may be joined to a run of summed axes
  if (lead < 0) throw ShapeError(fmt::format("{} cannot be summed to {}", from.to_string(), shape.to_string()));
  for (int a = lead; a < from.rank(); ++a)
    if (shape[a - lead] != from[a] && shape[a - lead] != 1)
      throw ShapeError(fmt::format("{} cannot be summed to {}", from.to_string(), shape.to_string()));

  const DType dtype = x.dtype();
  for (int end = from.rank(); end > 0;) {
    int begin = end;
    bool any = false;
    while (begin > 0 && (summed(begin - 1) || neutral(begin - 1))) {
      --begin;
      any |= summed(begin) && !neutral(begin);
    }
    if (begin == end) {
      --end;
      continue;
    }
    if (any) {
      Attrs attrs{{"kind", std::string("sum")}, {"begin", int64_t{begin}}, {"end", int64_t{end}}};
      if (dtype != DType::F32) attrs.set("out_f32", int64_t{1});
      x = x.graph().emit1(reduce_def(), {x}, std::move(attrs));
    }
    end = begin;
  }
  return cast(reshape(x, shape), dtype);
}

Value activation(const std::string& name, Value x) {
  using Make = Value (*)(Value);
  static const std::unordered_map<std::string, Make> by_name = {
      {"gelu", gelu},
      {"gelu_python", gelu},
      {"gelu_10",
       [](Value v) {
         const Value low = full(v.graph(), Shape{}, -10, v.dtype()), high = full(v.graph(), Shape{}, 10, v.dtype());
         return binary(PointwiseOp::Min, binary(PointwiseOp::Max, gelu(v), low), high);
       }},
      {"gelu_accurate", gelu_tanh},
      {"gelu_fast", gelu_tanh},
      {"gelu_new", gelu_tanh},
      {"gelu_python_tanh", gelu_tanh},
      {"gelu_pytorch_tanh", gelu_tanh},
      {"laplace",
       [](Value v) {
         constexpr double kMean = 0.707107, kDeviation = 0.282095, kSqrt2 = 1.4142135623730951;
         return mul(add(unary(PointwiseOp::Erf, mul(add(v, -kMean), 1 / (kDeviation * kSqrt2))), 1.0), 0.5);
       }},
      {"leaky_relu",
       [](Value v) { return select(less(full(v.graph(), Shape{}, 0, v.dtype()), v), v, mul(v, 0.01)); }},
      {"linear", [](Value v) { return v; }},
      {"mish", [](Value v) { return mul(v, tanh(softplus(v))); }},
      {"quick_gelu", [](Value v) { return mul(v, sigmoid(mul(v, 1.702))); }},
      {"relu", relu},
      {"relu2", [](Value v) { return square(relu(v)); }},
      {"relu6",
       [](Value v) { return binary(PointwiseOp::Min, relu(v), full(v.graph(), Shape{}, 6, v.dtype())); }},
      {"sigmoid", sigmoid},
      {"silu", silu},
      {"swish", silu},
      {"tanh", tanh},
  };
  const auto found = by_name.find(name);
  if (found == by_name.end())
    throw UnsupportedError("{}: the activation \"{}\" is not implemented", x.graph().scope(), name);
  return found->second(x);
}

}  // namespace hierarchos::ops
