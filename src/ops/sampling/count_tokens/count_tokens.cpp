#include "ops/sampling/count_tokens/count_tokens.h"

#include "ops/common.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 4, 4, "counts, rows, ids and kinds");
  const Type& counts = c.inputs[0];
  if (counts.dtype != DType::I32 || counts.shape.rank() != 2 || !counts.plain())
    c.fail("counts must be i32 [S, V], they are {}", counts.to_string());
  const Shape tokens{c.inputs[1].shape.rank() == 1 ? c.inputs[1].shape[0] : 0};
  expect(c, 1, "rows", DType::I32, tokens);
  expect(c, 2, "ids", DType::I32, tokens);
  expect(c, 3, "kinds", DType::I32, tokens);
  return {counts};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type>) {
  // Three numbers read and one changed, a token.
  return {0, 5 * 4 * static_cast<double>(inputs[1].shape.elements())};
}

}  // namespace

Value count_tokens(Value counts, Value rows, Value ids, Value kinds) {
  return counts.graph().emit1(count_tokens_def(), {counts, rows, ids, kinds});
}

const OpDef& count_tokens_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "count_tokens";
    d.infer = infer;
    d.updates = {{0, 0}};
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
