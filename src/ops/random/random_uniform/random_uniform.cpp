#include "ops/random/random_uniform/random_uniform.h"

#include "base/rng.h"
#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 2, 2, "step and tokens");
  expect(c, 0, "step", DType::I32, Shape{});
  const Type& tokens = c.inputs[1];
  if (tokens.dtype != DType::I32 || tokens.shape.rank() != 1 || !tokens.plain())
    c.fail("tokens must be i32 [T], they are {}", tokens.to_string());
  const int64_t columns = c.attrs.i("columns");
  if (columns < 0) c.fail("{} columns", columns);
  c.attrs.i("stream");
  return {Type(DType::F32, Shape{tokens.shape[0], columns})};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  // Ten rounds of two multiplications for four numbers.
  return {5 * static_cast<double>(outputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

}  // namespace

Value random_uniform(Value step, Value tokens, int64_t columns, const std::string& stream, uint64_t seed) {
  const auto key = static_cast<int64_t>(fnv1a64(stream) ^ seed);
  return tokens.graph().emit1(random_uniform_def(), {step, tokens}, {{"stream", key}, {"columns", columns}});
}

const OpDef& random_uniform_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "random_uniform";
    d.infer = infer;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
