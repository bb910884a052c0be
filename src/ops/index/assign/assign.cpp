#include "ops/index/assign/assign.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 2, 2, "target and value");
  const Type &target = c.inputs[0], &value = c.inputs[1];
  if (!target.plain() || !value.plain()) c.fail("both operands must be plain");
  const bool floats = computable(target.dtype) && computable(value.dtype);
  if (!floats && target.dtype != value.dtype)
    c.fail("{} cannot take over {}: types are equal or both floating", target.to_string(), value.to_string());
  if (target.shape != value.shape) c.fail("{} cannot take over {}", target.to_string(), value.to_string());
  return {Type(target.dtype, target.shape)};
}

bool accepts_strides(const Attrs&, int input, const Shape&, std::span<const int64_t>) { return input == 1; }

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {0, bytes_moved(inputs.subspan(1), outputs)};
}

}  // namespace

Value assign(Value target, Value value) { return target.graph().emit1(assign_def(), {target, value}); }

const OpDef& assign_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "assign";
    d.infer = infer;
    d.updates = {{0, 0}};
    d.accepts_strides = accepts_strides;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
