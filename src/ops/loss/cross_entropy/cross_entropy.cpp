#include "ops/loss/cross_entropy/cross_entropy.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

void expect_logits(const InferContext& c, size_t at) {
  expect_floating(c, at, "logits");
  const Shape& logits = c.inputs[at].shape;
  if (logits.rank() != 2) c.fail("logits must be [T, V], they are {}", logits.to_string());
  if (logits[1] < 1) c.fail("logits have no classes");
  expect(c, at + 1, "labels", DType::I32, Shape{logits[0]});
}

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 2, 2, "logits and labels");
  expect_logits(c, 0);
  const Type row(DType::F32, Shape{c.inputs[0].shape[0]});
  return {row, row};
}

std::vector<Type> infer_backward(const InferContext& c) {
  expect_inputs(c, 4, 4, "dloss, logits, labels and lse");
  expect_logits(c, 1);
  const Shape rows{c.inputs[1].shape[0]};
  expect(c, 0, "dloss", DType::F32, rows);
  expect(c, 3, "lse", DType::F32, rows);
  return {Type(c.inputs[1].dtype, c.inputs[1].shape)};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> made(2);
  if (!c.wanted[0]) return made;
  const Value logits = c.inputs[0], lse = c.outputs[1];
  if (c.grads[0]) made[0] = c.graph.emit1(cross_entropy_backward_def(), {*c.grads[0], logits, c.inputs[1], lse});
  if (c.grads[1]) {  // of the log-sum-exp (z-loss): softmax
    const Shape column{logits.shape()[0], 1};
    const Value softmax = exp(sub(cast(logits, DType::F32), reshape(lse, column)));
    const Value d = cast(mul(softmax, reshape(*c.grads[1], column)), logits.dtype());
    made[0] = made[0] ? add(*made[0], d) : d;
  }
  return made;
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {4 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

Cost cost_backward(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {4 * static_cast<double>(inputs[1].shape.elements()), bytes_moved(inputs, outputs)};
}

}  // namespace

CrossEntropyResult cross_entropy(Value logits, Value labels) {
  const auto made = logits.graph().emit(cross_entropy_def(), {logits, labels});
  return {made[0], made[1]};
}

// The kernel computes in fp32 whatever the logits are; they are large, so they are not converted first:
// Precision::Follow.
const OpDef& cross_entropy_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "cross_entropy";
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
    return d;
  }();
  return def;
}

const OpDef& cross_entropy_backward_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "cross_entropy_backward";
    d.infer = infer_backward;
    d.cost = cost_backward;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
