#include "ops/attention/rope/rope.h"

#include "graph/vjp.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  if (c.inputs.size() != 3 && c.inputs.size() != 4) c.fail("takes x, cos, sin and perhaps positions");
  const Type& x = c.inputs[0];
  const Type& cos = c.inputs[1];
  const Type& sin = c.inputs[2];
  if (x.shape.rank() != 3 || !x.plain() || !is_floating(x.dtype))
    c.fail("x must be floating [T, H, D], it is {}", x.to_string());
  for (const Type* t : {&cos, &sin})
    if (t->shape.rank() != 2 || !t->plain() || t->dtype != DType::F32)
      c.fail("cos and sin must be f32 [rows, R/2], one is {}", t->to_string());
  if (cos.shape != sin.shape) c.fail("cos is {}, sin is {}", cos.to_string(), sin.to_string());
  if (2 * cos.shape[1] > x.shape[2])
    c.fail("the tables rotate {} channels, a head has {}", 2 * cos.shape[1], x.shape[2]);
  if (c.inputs.size() == 4) {
    if (c.inputs[3].dtype != DType::I32 || c.inputs[3].shape != Shape{x.shape[0]})
      c.fail("positions must be i32 [{}], it is {}", x.shape[0], c.inputs[3].to_string());
  } else if (cos.shape[0] != x.shape[0]) {
    c.fail("without positions the tables have a row a token: {}, not {}", x.shape[0], cos.shape[0]);
  }
  return {Type(x.dtype, x.shape)};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> grads(c.inputs.size());
  if (!c.grads[0]) return grads;
  std::vector<Value> inputs = c.inputs;
  inputs[0] = *c.grads[0];
  Attrs attrs = c.attrs;
  attrs.set("inverse", 1 - c.attrs.i_or("inverse", 0));
  grads[0] = c.graph.emit1(rope_def(), std::move(inputs), std::move(attrs));
  return grads;
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  Cost total;
  const Shape& x = inputs[0].shape;
  total.flops = 6.0 * static_cast<double>(x[0] * x[1] * inputs[1].shape[1]);
  total.bytes = static_cast<double>(inputs[0].bytes() + outputs[0].bytes()) +
                8.0 * static_cast<double>(x[0] * inputs[1].shape[1]);
  return total;
}

bool accepts_strides(const Attrs&, int input, const Shape& shape, std::span<const int64_t> strides) {
  return input == 0 && (shape[2] <= 1 || strides[2] == 1);
}

}  // namespace

Value rope(Value x, Value cos, Value sin, std::optional<Value> positions, bool interleaved) {
  std::vector<Value> inputs = {x, cos, sin};
  if (positions) inputs.push_back(*positions);
  return x.graph().emit1(rope_def(), std::move(inputs),
                         {{"interleaved", static_cast<int64_t>(interleaved)}, {"inverse", int64_t{0}}});
}

const OpDef& rope_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "rope";
    d.infer = infer;
    d.vjp = vjp;
    d.accepts_strides = accepts_strides;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
