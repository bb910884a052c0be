#include "ops/optim/adamw/adamw.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 6, 6, "param, grad, m, v, hyper and enabled");
  const Shape& shape = c.inputs[0].shape;
  const char* names[] = {"param", "grad", "m", "v"};
  for (size_t i = 0; i < 4; ++i) expect(c, i, names[i], DType::F32, shape);
  expect(c, 4, "hyper", DType::F32, Shape{4});
  expect(c, 5, "enabled", DType::I32, Shape{});
  for (const char* name : {"beta1", "beta2"})
    if (!(c.attrs.f(name) >= 0 && c.attrs.f(name) < 1)) c.fail("{} must be in [0, 1), it is {}", name, c.attrs.f(name));
  if (!(c.attrs.f("eps") >= 0)) c.fail("eps must not be negative, it is {}", c.attrs.f("eps"));
  c.attrs.f("weight_decay");
  const Type type(DType::F32, shape);
  return {type, type, type};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type>) {
  const auto elements = static_cast<double>(inputs[0].shape.elements());
  return {14 * elements, 28 * elements};  // four read, three written
}

}  // namespace

AdamWResult adamw(Value param, Value grad, Value m, Value v, Value hyper, Value enabled, double beta1, double beta2, double eps,
                  double weight_decay) {
  const auto made =
      param.graph().emit(adamw_def(), {param, grad, m, v, hyper, enabled},
                         {{"beta1", beta1}, {"beta2", beta2}, {"eps", eps}, {"weight_decay", weight_decay}});
  return {made[0], made[1], made[2]};
}

const OpDef& adamw_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "adamw";
    d.precision = Precision::Full;
    d.infer = infer;
    d.updates = {{0, 0}, {1, 2}, {2, 3}};
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
