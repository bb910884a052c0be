#include "ops/sampling/argmax/argmax.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "one operand");
  expect_floating(c, 0, "x");
  const Shape& x = c.inputs[0].shape;
  if (x.rank() != 2) c.fail("x must be [T, V], it is {}", x.to_string());
  if (x[1] < 1) c.fail("there is nothing to choose from");
  return {Type(DType::I32, Shape{x[0]})};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

}  // namespace

Value argmax(Value x) { return x.graph().emit1(argmax_def(), {x}); }

const OpDef& argmax_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "argmax";
    d.infer = infer;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
