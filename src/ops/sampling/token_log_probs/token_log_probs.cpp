#include "ops/sampling/token_log_probs/token_log_probs.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 2, 2, "logits and ids");
  const Type& logits = c.inputs[0];
  if (logits.dtype != DType::F32 || logits.shape.rank() != 2 || !logits.plain())
    c.fail("logits must be f32 [R, V], they are {}", logits.to_string());
  const int64_t rows = logits.shape[0], count = c.attrs.i("count");
  if (count < 0 || count > logits.shape[1]) c.fail("the {} likeliest of {} tokens are wanted", count, logits.shape[1]);
  if (logits.shape[1] < 1) c.fail("there are no tokens");
  expect(c, 1, "ids", DType::I32, Shape{rows});
  return {Type(DType::I32, Shape{rows, 1 + count}), Type(DType::F32, Shape{rows, 1 + count})};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {2 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

}  // namespace

TokenLogProbs token_log_probs(Value logits, Value ids, int64_t count) {
  const std::vector<Value> out = logits.graph().emit(token_log_probs_def(), {logits, ids}, {{"count", count}});
  return {out[0], out[1]};
}

const OpDef& token_log_probs_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "token_log_probs";
    d.precision = Precision::Full;
    d.infer = infer;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
