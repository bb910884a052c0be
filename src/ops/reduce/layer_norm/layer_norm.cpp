#include "ops/reduce/layer_norm/layer_norm.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

void expect_vector(const InferContext& c, size_t at, const char* name, int64_t n) {
  expect_floating(c, at, name);
  if (c.inputs[at].shape != Shape{n}) c.fail("{} must be [{}], it is {}", name, n, c.inputs[at].to_string());
}

std::vector<Type> infer(const InferContext& c) {
  const bool weight = c.attrs.i_or("weight", 0) != 0, bias = c.attrs.i_or("bias", 0) != 0;
  const size_t count = 1 + static_cast<size_t>(weight) + static_cast<size_t>(bias);
  expect_inputs(c, count, count, "x, then weight and bias as the attributes say");
  expect_floating(c, 0, "x");
  const Type& x = c.inputs[0];
  if (x.shape.rank() < 1) c.fail("x has no axis to normalise over");
  if (!(c.attrs.f("eps") >= 0)) c.fail("eps must not be negative");
  if (weight) expect_vector(c, 1, "weight", x.shape.back());
  if (bias) expect_vector(c, count - 1, "bias", x.shape.back());
  const Type statistic(DType::F32, leading(x.shape));
  return {Type(x.dtype, x.shape), statistic, statistic};
}

std::vector<Type> infer_backward(const InferContext& c) {
  expect_inputs(c, 4, 5, "dy, x, mean, rstd and perhaps a weight");
  expect_floating(c, 0, "dy");
  expect_floating(c, 1, "x");
  const Type& x = c.inputs[1];
  if (x.shape.rank() < 1) c.fail("x has no axis to normalise over");
  if (c.inputs[0].shape != x.shape) c.fail("dy must have x's shape {}", x.shape.to_string());
  expect(c, 2, "mean", DType::F32, leading(x.shape));
  expect(c, 3, "rstd", DType::F32, leading(x.shape));
  if (c.inputs.size() == 5) expect_vector(c, 4, "weight", x.shape.back());
  return {Type(x.dtype, x.shape)};
}

Value column(Value statistic) {
  std::vector<int64_t> dims = statistic.shape().to_vector();
  dims.push_back(1);
  return reshape(statistic, Shape(dims));
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  if (c.grads[1] || c.grads[2])
    throw UnsupportedError("{}: the gradient of a layer norm's statistics is not supported", c.graph.scope());
  std::vector<std::optional<Value>> made(c.inputs.size());
  if (!c.grads[0]) return made;
  const Value dy = *c.grads[0], x = c.inputs[0], mean = c.outputs[1], rstd = c.outputs[2];
  const bool weight = c.attrs.i_or("weight", 0) != 0, bias = c.attrs.i_or("bias", 0) != 0;
  if (c.wanted[0]) {
    std::vector<Value> operands = {dy, x, mean, rstd};
    if (weight) operands.push_back(c.inputs[1]);
    made[0] = c.graph.emit1(layer_norm_backward_def(), operands);
  }
  const Value wide = cast(dy, DType::F32);
  if (weight && c.wanted[1]) {
    const Value normed = mul(sub(cast(x, DType::F32), column(mean)), column(rstd));
    made[1] = cast(sum_to(mul(wide, normed), c.inputs[1].shape()), c.inputs[1].dtype());
  }
  const size_t last = c.inputs.size() - 1;
  if (bias && c.wanted[last]) made[last] = cast(sum_to(wide, c.inputs[last].shape()), c.inputs[last].dtype());
  return made;
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {7 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

Cost cost_backward(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {11 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

}  // namespace

Value layer_norm(Value x, std::optional<Value> weight, std::optional<Value> bias, double eps) {
  std::vector<Value> operands = {x};
  Attrs attrs{{"eps", eps}};
  if (weight) {
    operands.push_back(*weight);
    attrs.set("weight", int64_t{1});
  }
  if (bias) {
    operands.push_back(*bias);
    attrs.set("bias", int64_t{1});
  }
  return x.graph().emit(layer_norm_def(), operands, std::move(attrs))[0];
}

// Statistics are fp32 inside the kernel, whatever x is, so x need not be converted first: Precision::Follow.
const OpDef& layer_norm_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "layer_norm";
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
    return d;
  }();
  return def;
}

const OpDef& layer_norm_backward_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "layer_norm_backward";
    d.infer = infer_backward;
    d.cost = cost_backward;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
