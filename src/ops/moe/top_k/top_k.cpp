#include "ops/moe/top_k/top_k.h"

#include "ops/common.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "scores");
  expect_floating(c, 0, "scores");
  const Shape& s = c.inputs[0].shape;
  const int64_t k = c.attrs.i("k");
  if (s.rank() != 2) c.fail("scores must be a matrix, they are {}", c.inputs[0].to_string());
  if (k < 1 || k > s[1]) c.fail("the {} largest of {} are asked for", k, s[1]);
  return {Type(c.inputs[0].dtype, {s[0], k}), Type(DType::I32, {s[0], k})};
}

}  // namespace

TopK top_k(Value x, int64_t k) {
  const auto r = x.graph().emit(top_k_def(), {x}, {{"k", k}});
  return {r[0], r[1]};
}

const OpDef& top_k_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "top_k";
    d.infer = infer;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
