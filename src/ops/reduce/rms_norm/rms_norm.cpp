#include "ops/reduce/rms_norm/rms_norm.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

void expect_weight(const InferContext& c, size_t at, int64_t n) {
  if (c.inputs.size() <= at) return;
  expect_floating(c, at, "weight");
  if (c.inputs[at].shape != Shape{n}) c.fail("weight must be [{}], it is {}", n, c.inputs[at].to_string());
}

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 2, "x and perhaps a weight");
  expect_floating(c, 0, "x");
  const Type& x = c.inputs[0];
  if (x.shape.rank() < 1) c.fail("x has no axis to normalise over");
  if (!(c.attrs.f("eps") >= 0)) c.fail("eps must not be negative");
  expect_weight(c, 1, x.shape.back());
  return {Type(x.dtype, x.shape), Type(DType::F32, leading(x.shape))};
}

std::vector<Type> infer_backward(const InferContext& c) {
  expect_inputs(c, 3, 4, "dy, x, rstd and perhaps a weight");
  expect_floating(c, 0, "dy");
  expect_floating(c, 1, "x");
  const Type& x = c.inputs[1];
  if (x.shape.rank() < 1) c.fail("x has no axis to normalise over");
  if (c.inputs[0].shape != x.shape) c.fail("dy must have x's shape {}", x.shape.to_string());
  expect(c, 2, "rstd", DType::F32, leading(x.shape));
  expect_weight(c, 3, x.shape.back());
  return {Type(x.dtype, x.shape)};
}

// A statistic of rows, against the rows' elements.
Value column(Value statistic) {
  std::vector<int64_t> dims = statistic.shape().to_vector();
  dims.push_back(1);
  return reshape(statistic, Shape(dims));
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> made(c.inputs.size());
  const Value x = c.inputs[0], rstd = c.outputs[1];
  const bool weighted = c.inputs.size() > 1;
  if (c.grads[0]) {
    const Value dy = *c.grads[0];
    if (c.wanted[0]) {
      std::vector<Value> operands = {dy, x, rstd};
      if (weighted) operands.push_back(c.inputs[1]);
      made[0] = c.graph.emit1(rms_norm_backward_def(), operands, {{"weight_offset", c.attrs.f_or("weight_offset", 0)}});
    }
    if (weighted && c.wanted[1]) {
      const Value normed = mul(cast(x, DType::F32), column(rstd));
      made[1] = cast(sum_to(mul(cast(dy, DType::F32), normed), c.inputs[1].shape()), c.inputs[1].dtype());
    }
  }
  if (c.grads[1] && c.wanted[0]) {  // drstd/dx = -rstd³·x / N
    const double n = static_cast<double>(x.shape().back());
    const Value slope = mul(mul(*c.grads[1], mul(rstd, square(rstd))), -1 / n);
    const Value dx = cast(mul(column(slope), cast(x, DType::F32)), x.dtype());
    made[0] = made[0] ? add(*made[0], dx) : dx;
  }
  return made;
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {4 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

Cost cost_backward(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {8 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

}  // namespace

NormResult rms_norm_with_stats(Value x, std::optional<Value> weight, double eps, double weight_offset) {
  std::vector<Value> operands = {x};
  if (weight) operands.push_back(*weight);
  const auto made = x.graph().emit(rms_norm_def(), operands, {{"eps", eps}, {"weight_offset", weight_offset}});
  return {made[0], made[1]};
}

Value rms_norm(Value x, std::optional<Value> weight, double eps, double weight_offset) {
  return rms_norm_with_stats(x, weight, eps, weight_offset).y;
}

// Statistics are fp32 inside the kernel, whatever x is, so x need not be converted first: Precision::Follow.
const OpDef& rms_norm_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "rms_norm";
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
    return d;
  }();
  return def;
}

const OpDef& rms_norm_backward_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "rms_norm_backward";
    d.infer = infer_backward;
    d.cost = cost_backward;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
