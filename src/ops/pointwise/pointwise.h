// Elementwise operations. Each builder emits one "pointwise" node with a one-instruction expression; passes fuse
// chains of them. Operands broadcast by numpy's rules. Integer operands stay integer; use to_float.
//
// Node: attr expr (ops/pointwise/expr.h), attr shape when it has no operands, attr dtypes (a result type each, as
// DType numbers). Operands may be strided views; results are contiguous with the broadcast shape.
#pragma once

#include "graph/graph.h"
#include "ops/pointwise/expr.h"

namespace hierarchos::ops {

const OpDef& pointwise_def();

Value unary(PointwiseOp op, Value x);
Value binary(PointwiseOp op, Value a, Value b);
Value select(Value condition, Value a, Value b);

Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
Value div(Value a, Value b);
Value add(Value a, double b);
Value mul(Value a, double b);
Value neg(Value x);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value square(Value x);
Value tanh(Value x);
Value sigmoid(Value x);
Value silu(Value x);
Value gelu(Value x);       // erf form
Value gelu_tanh(Value x);  // tanh form
Value relu(Value x);
Value softplus(Value x);   // x itself where x > 20
Value less(Value a, Value b);
Value clamp(Value x, double low, double high);  // fclamp: finite values limited; derivative 1 inside and at the bounds
Value cast(Value x, DType dtype);               // between floating types, and to_float / to_int
Value full(Graph& graph, Shape shape, double value, DType dtype = DType::F32);
Value zeros(Graph& graph, const Type& type);
// Value of a, gradient of b: straight-through.
Value straight_through(Value a, Value b);
Value stop_gradient(Value x);
// Sums `x` over broadcast axes down to `shape` (gradient of broadcasting).
Value sum_to(Value x, const Shape& shape);
// An elementwise activation by its Hugging Face name: silu, swish, gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, relu,
// relu2, tanh, sigmoid, quick_gelu, linear … Throws UnsupportedError naming it.
Value activation(const std::string& name, Value x);

}  // namespace hierarchos::ops
