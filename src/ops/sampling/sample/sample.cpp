#include "ops/sampling/sample/sample.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 4, 4, "scores, settings, keys and steps");
  const Type& scores = c.inputs[0];
  if (scores.dtype != DType::F32 || scores.shape.rank() != 2 || !scores.plain())
    c.fail("scores must be f32 [R, V], they are {}", scores.to_string());
  const int64_t rows = scores.shape[0];
  if (scores.shape[1] < 1) c.fail("there is nothing to choose from");
  expect(c, 1, "settings", DType::F32, Shape{rows, kSampleSettings});
  expect(c, 2, "keys", DType::I32, Shape{rows, 2});
  expect(c, 3, "steps", DType::I32, Shape{rows});
  return {Type(DType::I32, Shape{rows}), Type(DType::F32, Shape{rows, 2})};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {2 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

}  // namespace

SampleResult sample(Value scores, Value settings, Value keys, Value steps) {
  const std::vector<Value> out = scores.graph().emit(sample_def(), {scores, settings, keys, steps});
  return {out[0], out[1]};
}

const OpDef& sample_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "sample";
    d.precision = Precision::Full;
    d.infer = infer;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
