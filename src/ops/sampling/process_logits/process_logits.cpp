#include "ops/sampling/process_logits/process_logits.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 7, 7, "logits, rules, counts, rows and three of edits");
  const Type &logits = c.inputs[0], &counts = c.inputs[2];
  if (logits.dtype != DType::F32 || logits.shape.rank() != 2 || !logits.plain())
    c.fail("logits must be f32 [R, V], they are {}", logits.to_string());
  const int64_t rows = logits.shape[0];
  expect(c, 1, "rules", DType::F32, Shape{rows, kLogitRules});
  expect(c, 2, "counts", DType::I32, Shape{counts.shape.rank() > 0 ? counts.shape[0] : 0, logits.shape[1]});
  expect(c, 3, "rows", DType::I32, Shape{rows});
  const Shape edits{rows, c.inputs[4].shape.rank() == 2 ? c.inputs[4].shape[1] : 0};
  expect(c, 4, "tokens of edits", DType::I32, edits);
  expect(c, 5, "kinds of edits", DType::I32, edits);
  expect(c, 6, "values of edits", DType::F32, edits);
  return {Type(DType::F32, logits.shape)};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  const auto elements = static_cast<double>(inputs[0].shape.elements());
  // Of the counts, only the rows that belong to rows of logits are read.
  return {4 * elements, 4 * elements + bytes_moved(inputs.first(2), outputs)};
}

}  // namespace

Value process_logits(Value logits, Value rules, Value counts, Value rows, Value edit_tokens, Value edit_kinds,
                     Value edit_values) {
  return logits.graph().emit1(process_logits_def(),
                              {logits, rules, counts, rows, edit_tokens, edit_kinds, edit_values});
}

const OpDef& process_logits_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "process_logits";
    d.precision = Precision::Full;
    d.infer = infer;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
